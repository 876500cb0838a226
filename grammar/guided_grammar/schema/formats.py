"""String formats of JSON Schema as regular languages."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from guided_grammar.automata import Dfa
from guided_grammar.budget import Budget
from guided_grammar.errors import UnsupportedConstraint
from guided_grammar.limits import Limits
from guided_grammar.regex import full_language
from guided_grammar.schema.format_patterns import HOSTNAME, HOSTNAME_LENGTH, PATTERNS, PUNYCODE, WIDER

KNOWN_FORMATS = frozenset({*PATTERNS, "hostname", "idn-hostname"})
"""Formats that the specification defines; any other name is an annotation."""

_LIMITS = Limits(steps=10_000_000, automaton_bytes=16_777_216)  # for patterns that are our own constants


@dataclass(frozen=True)
class FormatLanguage:
    """`dfa` with at most `high` code points is valid; every valid value is in `wider` (with the same bound)."""

    dfa: Dfa
    wider: Dfa
    high: int | None = None


def language(name: str, path: str = "") -> FormatLanguage:
    """The strings of a known format. Raises UnsupportedConstraint for one that is not enforced."""
    if name not in PATTERNS and name != "hostname":
        raise UnsupportedConstraint(f"{name!r} is not supported", keyword="format", path=path)
    return _language(name)


@cache
def _language(name: str) -> FormatLanguage:
    if name == "hostname":
        labels = _compile(HOSTNAME)
        return FormatLanguage(labels.difference(_compile(PUNYCODE), Budget(_LIMITS)), labels, HOSTNAME_LENGTH)
    dfa = _compile(PATTERNS[name])
    return FormatLanguage(dfa, _compile(WIDER[name]) if name in WIDER else dfa)


def _compile(pattern: str) -> Dfa:
    return full_language(pattern, Budget(_LIMITS), dialect="ecma", keyword="format")
