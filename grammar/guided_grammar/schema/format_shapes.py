"""Formats written as a grammar by hand, where the automaton has too many states to be one."""

from __future__ import annotations

from guided_grammar.ir import EMPTY, NOTHING, Expr, Rules, alt, chars, seq, text
from guided_grammar.ranges import Ranges, difference
from guided_grammar.schema.json_text import QUOTE

_LETTERS_DIGITS: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A))
_X: Ranges = ((0x58, 0x58), (0x78, 0x78))
_N: Ranges = ((0x4E, 0x4E), (0x6E, 0x6E))
_ANY, _DASH, _DOT = chars(_LETTERS_DIGITS), text("-"), text(".")

_LABELS = (63, 63, 31, 31, 15, 15, 15)
"""Longest labels, in order: 239 characters with their dots, of the 253 that a host name may have."""


def hostname(rules: Rules) -> Expr:
    """Host names of at most `_LABELS`, none of them `xn--...`: one chain of rules, counting down, for all labels."""
    after, dashed = _chain(max(_LABELS), rules)
    name: Expr = EMPTY
    for bound in reversed(_LABELS):
        more = EMPTY if name == EMPTY else alt(EMPTY, seq(_DOT, name))
        name = rules.add(seq(rules.add(_label(bound, after, dashed), "label"), more), "labels")
    return seq(QUOTE, name, QUOTE)


def _chain(longest: int, rules: Rules) -> tuple[list[Expr], list[Expr]]:
    """Rules for what may follow a letter or digit, and what must follow a dash, by the number of characters left."""
    after: list[Expr] = [EMPTY]
    dashed: list[Expr] = [NOTHING]
    for left in range(1, longest):
        after.append(rules.add(alt(EMPTY, seq(_ANY, after[left - 1]), seq(_DASH, dashed[left - 1])), "host"))
        dashed.append(rules.add(alt(seq(_ANY, after[left - 1]), seq(_DASH, dashed[left - 1])), "host"))
    return after, dashed


def _label(bound: int, after: list[Expr], dashed: list[Expr]) -> Expr:
    """A label of at most `bound` >= 5 characters that does not start with `xn--`."""
    third = alt(EMPTY, seq(_ANY, after[bound - 3]), seq(_DASH, _ANY, after[bound - 4]))
    others = chars(difference(_LETTERS_DIGITS, _N))
    second = alt(EMPTY, seq(others, after[bound - 2]), seq(_DASH, dashed[bound - 2]), seq(chars(_N), third))
    return alt(seq(chars(difference(_LETTERS_DIGITS, _X)), after[bound - 1]), seq(chars(_X), second))
