"""String formats of JSON Schema as regular languages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from guided_grammar.automata import Dfa
from guided_grammar.budget import Budget
from guided_grammar.errors import UnsupportedConstraint
from guided_grammar.ir import Expr, Rules
from guided_grammar.limits import Limits
from guided_grammar.regex import full_language
from guided_grammar.schema import format_shapes
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


def shape(dfa: Dfa, high: int | None, rules: Rules) -> Expr | None:
    """The JSON texts of a format that has a grammar of its own, as long as nothing else constrains it."""
    build = _SHAPES.get((dfa, high)) if _SHAPES else None
    return None if build is None else build(rules)


def common(dfa: Dfa) -> Dfa:
    """Of a format that is all of `dfa`, the values without what hardly any value has: address literals and quotes."""
    return _COMMON.get(dfa, dfa)


_WITHOUT = dict.fromkeys(("uri", "uri-reference", "iri", "iri-reference"), "[^\\[]*")
_WITHOUT |= dict.fromkeys(("email", "idn-email"), '[^\\["]*')
_COMMON: dict[Dfa, Dfa] = {}
_SHAPES: dict[tuple[Dfa, int | None], Callable[[Rules], Expr]] = {}


@cache
def _language(name: str) -> FormatLanguage:
    if name == "hostname":
        labels = _compile(HOSTNAME)
        dfa = labels.difference(_compile(PUNYCODE), Budget(_LIMITS))
        _SHAPES[dfa, HOSTNAME_LENGTH] = format_shapes.hostname
        return FormatLanguage(dfa, labels, HOSTNAME_LENGTH)
    dfa = _compile(PATTERNS[name])
    if name in _WITHOUT:
        _COMMON[dfa] = dfa.intersect(_compile(_WITHOUT[name]), Budget(_LIMITS))
    return FormatLanguage(dfa, _compile(WIDER[name]) if name in WIDER else dfa)


def _compile(pattern: str) -> Dfa:
    return full_language(pattern, Budget(_LIMITS), dialect="ecma", keyword="format")
