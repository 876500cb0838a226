"""Scripts and binary properties of Unicode by ECMA-262's names, from the tables of the package regex."""

from __future__ import annotations

import importlib
import re
import sys
from functools import cache
from typing import Any

from guided_grammar.ranges import Ranges, normalise

_SCRIPTS = {"Script": "Script", "sc": "Script", "Script_Extensions": "Script_Extensions", "scx": "Script_Extensions"}
_SCRIPT = re.compile(r"[A-Z][a-z]+(_[A-Z][a-z]+)*|SignWriting")
_PROPERTIES = frozenset((
    "ASCII", "ASCII_Hex_Digit", "AHex", "Alphabetic", "Alpha", "Bidi_Control", "Bidi_C", "Bidi_Mirrored", "Bidi_M",
    "Case_Ignorable", "CI", "Cased", "Changes_When_Casefolded", "CWCF", "Changes_When_Casemapped", "CWCM",
    "Changes_When_Lowercased", "CWL", "Changes_When_Titlecased", "CWT", "Changes_When_Uppercased", "CWU", "Dash",
    "Default_Ignorable_Code_Point", "DI", "Deprecated", "Dep", "Diacritic", "Dia", "Emoji", "Emoji_Component",
    "EComp", "Emoji_Modifier", "EMod", "Emoji_Modifier_Base", "EBase", "Emoji_Presentation", "EPres",
    "Extended_Pictographic", "ExtPict", "Extender", "Ext", "Grapheme_Base", "Gr_Base", "Grapheme_Extend", "Gr_Ext",
    "Hex_Digit", "Hex", "IDS_Binary_Operator", "IDSB", "IDS_Trinary_Operator", "IDST", "ID_Continue", "IDC",
    "ID_Start", "IDS", "Ideographic", "Ideo", "Join_Control", "Join_C", "Logical_Order_Exception", "LOE",
    "Lowercase", "Lower", "Math", "Noncharacter_Code_Point", "NChar", "Pattern_Syntax", "Pat_Syn",
    "Pattern_White_Space", "Pat_WS", "Quotation_Mark", "QMark", "Radical", "Regional_Indicator", "RI",
    "Sentence_Terminal", "STerm", "Soft_Dotted", "SD", "Terminal_Punctuation", "Term", "Unified_Ideograph", "UIdeo",
    "Uppercase", "Upper", "Variation_Selector", "VS", "White_Space", "space", "XID_Continue", "XIDC", "XID_Start",
    "XIDS",
))  # fmt: skip
"""ECMA-262's binary properties, all but Changes_When_NFKC_Casefolded. regex knows more, and takes any spelling."""


@cache
def script(name: str, value: str) -> Ranges | None:
    """The characters of `\\p{name=value}`; None where that is no script, or the package is not installed."""
    if name not in _SCRIPTS or not _SCRIPT.fullmatch(value):
        return None
    return _matching(f"{_SCRIPTS[name]}={value}")


@cache
def binary_property(name: str) -> Ranges | None:
    """The characters of `\\p{name}`; None where ECMA-262 has no such property, or the package is not installed."""
    return _matching(name) if name in _PROPERTIES else None


def _matching(name: str) -> Ranges | None:
    try:
        regex: Any = importlib.import_module("regex")
    except ImportError:
        return None
    try:
        runs = regex.compile(rf"\p{{{name}}}+")
    except regex.error:
        return None
    return normalise((found.start(), found.end() - 1) for found in runs.finditer(_characters()))


@cache
def _characters() -> str:
    return "".join(map(chr, range(sys.maxunicode + 1)))
