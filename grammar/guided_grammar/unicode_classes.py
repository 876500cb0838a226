"""Character classes of ECMAScript regular expressions, and the POSIX names of `guided_regex`."""

from __future__ import annotations

import sys
import unicodedata
from functools import cache

from guided_grammar.ranges import ALL, Ranges, complement, normalise
from guided_grammar.unicode_tables import binary_property, script

DIGIT: Ranges = ((0x30, 0x39),)
WORD: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
_BLANKS: Ranges = (
    (9, 13), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F),
    (0x205F, 0x205F), (0x3000, 0x3000),
)  # fmt: skip
SPACE: Ranges = (*_BLANKS, (0xFEFF, 0xFEFF))
DOT: Ranges = complement(((10, 10), (13, 13), (0x2028, 0x2029)))
"""`.` without the flag s: everything but line ends."""

SHORTHANDS = {"d": DIGIT, "w": WORD, "s": SPACE}

POSIX = {
    "alnum": ((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)),
    "alpha": ((0x41, 0x5A), (0x61, 0x7A)),
    "blank": ((9, 9), (32, 32)),
    "cntrl": ((0, 31), (127, 127)),
    "digit": DIGIT,
    "graph": ((33, 126),),
    "lower": ((0x61, 0x7A),),
    "print": ((32, 126),),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ((9, 13), (32, 32)),
    "upper": ((0x41, 0x5A),),
    "word": WORD,
    "xdigit": ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)),
}

_LONG_NAMES = {
    "Letter": "L", "Cased_Letter": "LC", "Uppercase_Letter": "Lu", "Lowercase_Letter": "Ll", "Titlecase_Letter": "Lt",
    "Modifier_Letter": "Lm", "Other_Letter": "Lo", "Mark": "M", "Combining_Mark": "M", "Nonspacing_Mark": "Mn",
    "Spacing_Mark": "Mc", "Enclosing_Mark": "Me", "Number": "N", "Decimal_Number": "Nd", "digit": "Nd",
    "Letter_Number": "Nl", "Other_Number": "No", "Punctuation": "P", "punct": "P", "Connector_Punctuation": "Pc",
    "Dash_Punctuation": "Pd", "Open_Punctuation": "Ps", "Close_Punctuation": "Pe", "Initial_Punctuation": "Pi",
    "Final_Punctuation": "Pf", "Other_Punctuation": "Po", "Symbol": "S", "Math_Symbol": "Sm", "Currency_Symbol": "Sc",
    "Modifier_Symbol": "Sk", "Other_Symbol": "So", "Separator": "Z", "Space_Separator": "Zs", "Line_Separator": "Zl",
    "Paragraph_Separator": "Zp", "Other": "C", "Control": "Cc", "cntrl": "Cc", "Format": "Cf", "Surrogate": "Cs",
    "Private_Use": "Co", "Unassigned": "Cn",
}  # fmt: skip
_GROUPS = {"LC": ("Lu", "Ll", "Lt")}
_SHORT_NAMES = frozenset(_LONG_NAMES.values())


@cache
def _by_category() -> dict[str, Ranges]:
    runs: dict[str, list[tuple[int, int]]] = {}
    start, current = 0, unicodedata.category("\0")
    for code in range(1, sys.maxunicode + 2):
        category = unicodedata.category(chr(code)) if code <= sys.maxunicode else ""
        if category != current:
            runs.setdefault(current, []).append((start, code - 1))
            start, current = code, category
    return {category: normalise(found) for category, found in runs.items()}


def _category(name: str) -> Ranges:
    found = _by_category()
    wanted = _GROUPS.get(name) or [category for category in found if category.startswith(name)]
    return normalise(r for category in wanted for r in found[category])


@cache
def unicode_property(text: str) -> Ranges | None:
    """The characters of `\\p{text}`: categories, scripts and binary properties by ECMA-262; None for any other name."""
    name, separator, value = text.partition("=")
    if separator:
        return _named_category(value) if name in ("General_Category", "gc") else script(name, value)
    if name in _BINARY:
        return _BINARY[name] if name != "Assigned" else complement(_category("Cn"))
    found = _named_category(name)
    return binary_property(name) if found is None else found


def _named_category(name: str) -> Ranges | None:
    short = _LONG_NAMES.get(name, name)
    return _category(short) if short in _SHORT_NAMES else None


_BINARY: dict[str, Ranges] = {
    "Any": ALL,
    "Assigned": (),
    "ASCII": ((0, 127),),
    "ASCII_Hex_Digit": POSIX["xdigit"],
    "AHex": POSIX["xdigit"],
    "White_Space": normalise((*_BLANKS, (0x85, 0x85))),
}
