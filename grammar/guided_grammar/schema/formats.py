"""String formats of JSON Schema as regular languages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

from guided_grammar.automata import Dfa
from guided_grammar.budget import Budget
from guided_grammar.errors import UnsupportedConstraint
from guided_grammar.ir import Expr, Rules, alt, seq, text
from guided_grammar.limits import Limits
from guided_grammar.ranges import Ranges, size
from guided_grammar.regex import full_language
from guided_grammar.schema import format_patterns, format_shapes, resource_shapes
from guided_grammar.schema.format_patterns import HOSTNAME, HOSTNAME_LENGTH, PATTERNS, RESERVED, WIDER
from guided_grammar.schema.json_text import QUOTE

KNOWN_FORMATS = frozenset({*PATTERNS, "hostname", "idn-hostname"})
"""Formats that the specification defines; any other name is an annotation."""

_LIMITS = Limits(steps=10_000_000, automaton_bytes=16_777_216)  # for patterns that are our own constants


@dataclass(frozen=True)
class FormatLanguage:
    """`dfa` with at most `high` code points is valid; every valid value is in `wider` with at most `wider_high`."""

    dfa: Dfa
    wider: Dfa
    high: int | None = None
    wider_high: int | None = None


def language(name: str, path: str = "") -> FormatLanguage:
    """The strings of a known format. Raises UnsupportedConstraint for one that is not enforced."""
    if name not in PATTERNS and name != "hostname":
        raise UnsupportedConstraint(f"{name!r} is not supported", keyword="format", path=path)
    return _language(name)


def shape(dfa: Dfa, low: int, high: int | None, rules: Rules) -> Expr | None:
    """The JSON texts of a format between two bounds that has a grammar of its own for them, None where it has not, or
    where something else constrains it."""
    build = _SHAPES.get(dfa) if _SHAPES else None
    return None if build is None else build(low, high, rules)


def begun_shape(dfa: Dfa, low: int, high: int, rules: Rules, budget: Budget) -> Expr | None:
    """The same of a URI or IRI of which something else constrains the beginning only, such as `^https?://`."""
    found = _beginnings(dfa, budget) if _RESTS else None
    if not found or min(map(len, found)) < low or max(map(len, found)) + _SHORTEST_REST > high:
        return None
    return seq(QUOTE, alt(*(seq(text(begun), build(high - len(begun), rules)) for begun, build in found.items())))


def _beginnings(dfa: Dfa, budget: Budget) -> dict[str, _Rest] | None:
    """The few texts behind which only a rest of `_RESTS` may follow; None where there are more, or other texts."""
    found: dict[str, _Rest] = {}
    waiting = [("", 0)]
    while waiting:
        begun, state = waiting.pop()
        rest = _RESTS.get(dfa.rest(state, budget)) if begun.endswith("/") else None
        if rest is not None:
            found[begun] = rest
            continue
        edges = dfa.edges[state]
        many = sum(size(ranges) for ranges, _ in edges) + len(waiting) + len(found) > _MOST_BEGINNINGS
        if dfa.accepting[state] or len(begun) >= _LONGEST_BEGINNING or many:
            return None
        codes = ((code, target) for ranges, target in edges for low, high in ranges for code in range(low, high + 1))
        waiting += ((begun + chr(code), target) for code, target in codes)
    return found


def common(dfa: Dfa) -> Dfa:
    """Of a format that is all of `dfa`, the values without what hardly any value has: address literals and quotes."""
    return _COMMON.get(dfa, dfa)


_WITHOUT = dict.fromkeys(("uri", "uri-reference", "iri", "iri-reference"), "[^\\[]*")
_WITHOUT |= dict.fromkeys(("email", "idn-email"), '[^\\["]*')
_COMMON: dict[Dfa, Dfa] = {}
_Rest = Callable[[int, Rules], Expr]
_LONGEST_BEGINNING, _MOST_BEGINNINGS, _SHORTEST_REST = 64, 4, 24
_RESTS: dict[Dfa, _Rest] = {}
_SHAPES: dict[Dfa, Callable[[int, int | None, Rules], Expr | None]] = {}


@cache
def _language(name: str) -> FormatLanguage:
    if name == "hostname":
        labels = _compile(HOSTNAME)
        dfa = labels.difference(_compile(RESERVED), Budget(_LIMITS))
        _SHAPES[dfa] = format_shapes.hostname
        return FormatLanguage(dfa, labels, HOSTNAME_LENGTH, HOSTNAME_LENGTH)
    found = _email(name) if name in format_patterns.EMAIL_BOUNDS else FormatLanguage(*_both(name))
    if name in format_patterns.RESOURCES:
        _keep_resource(found.dfa, name)
    if name in _WITHOUT:
        _COMMON[found.dfa] = found.dfa.intersect(_compile(_WITHOUT[name]), Budget(_LIMITS))
    return found


def _both(name: str) -> tuple[Dfa, Dfa]:
    dfa = _compile(PATTERNS[name])
    return dfa, _compile(WIDER[name]) if name in WIDER else dfa


def _email(name: str) -> FormatLanguage:
    dfa, wider = _both(name)
    budget = Budget(_LIMITS)
    dfa = dfa.intersect(_compile(format_patterns.EMAIL_BOUNDS[name]), budget)
    dfa = dfa.difference(_compile(format_patterns.EMAIL_RESERVED), budget)
    mail, literal = _mail(name), _compile(format_patterns.LITERAL)
    _SHAPES[dfa] = partial(format_shapes.email, mail, literal)
    return FormatLanguage(dfa, wider, format_patterns.EMAIL_LENGTH)


def _mail(name: str) -> format_shapes.Mail:
    atom, quoted = _class(format_patterns.ATOM), _class(format_patterns.QUOTED)
    if name == "email":
        return format_shapes.Mail(atom, quoted, (), ())
    wide = _class(format_patterns.ANY_WIDE)
    return format_shapes.Mail(atom, quoted, wide, _class(format_patterns.WIDE_LABEL))


def _keep_resource(dfa: Dfa, name: str) -> None:
    """Remember the grammars of a format and of what may follow its beginnings."""
    resource, budget = _resource(name), Budget(_LIMITS)
    build = resource_shapes.reference if name.endswith("reference") else resource_shapes.full
    _SHAPES[dfa] = partial(build, resource)
    for begun in ("a://", "a://a/"):
        rest = dfa.rest(dfa.reached(begun), budget)
        _RESTS[rest] = partial(resource_shapes.after_beginning, resource, begun.endswith("a/"))


def _resource(name: str) -> resource_shapes.Resource:
    found = format_patterns.RESOURCES[name]
    return resource_shapes.Resource(*map(_class, (found.host, found.path, found.query, found.fragment)))


def _class(characters: str) -> Ranges:
    ((ranges, _),) = _compile(f"[{characters}]").edges[0]
    return ranges


def _compile(pattern: str) -> Dfa:
    return full_language(pattern, Budget(_LIMITS), dialect="ecma", keyword="format")
