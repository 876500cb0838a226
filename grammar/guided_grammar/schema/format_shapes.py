"""Formats written as a grammar by hand, where the automaton has too many states to be one."""

from __future__ import annotations

from dataclasses import dataclass

from guided_grammar.bounded import counted
from guided_grammar.ir import NOTHING, Expr, Rules, alt, chars, seq, text
from guided_grammar.ranges import Ranges, difference
from guided_grammar.schema.json_text import QUOTE

_LETTERS_DIGITS: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A))
_X: Ranges = ((0x58, 0x58), (0x78, 0x78))
_ANY, _DASH, _DOT = chars(_LETTERS_DIGITS), text("-"), text(".")


@dataclass(frozen=True)
class _Label:
    """Up to `longest` letters and digits, or up to `first` and then `more` times a dash (the first time one or two) and
    up to `run`."""

    longest: int
    first: int
    more: int
    run: int


_LONG, _SHORT = _Label(63, 18, 4, 10), _Label(31, 13, 3, 5)
_LABELS = (_LONG, _LONG, _SHORT, _SHORT, _SHORT)
"""223 characters with their dots, of the 253 that a host name may have."""


def hostname(rules: Rules) -> Expr:
    """Host names of at most `_LABELS`, none of them `xn--...`."""
    exits: Expr = QUOTE
    for label in reversed(_LABELS):
        name = rules.add(_label(label, exits, rules), "label")
        exits = alt(QUOTE, seq(_DOT, name))
    return seq(QUOTE, name)


def _label(label: _Label, exits: Expr, rules: Rules) -> Expr:
    after: Expr = NOTHING
    for _ in range(label.more):
        dashed = NOTHING if after == NOTHING else seq(_DASH, after)
        run = rules.add(counted(_ANY, 1, label.run, alt(exits, dashed)), "run")
        after = run
    first = chars(difference(_LETTERS_DIGITS, _X))
    return alt(
        seq(first, _rest(label, exits, seq(_DASH, alt(after, seq(_DASH, after))))),
        seq(chars(_X), _rest(label, exits, seq(_DASH, after))),
    )


def _rest(label: _Label, exits: Expr, dashed: Expr) -> Expr:
    """What follows the first character of a label."""
    return alt(counted(_ANY, 0, label.longest - 1, exits), counted(_ANY, 0, label.first - 1, dashed))
