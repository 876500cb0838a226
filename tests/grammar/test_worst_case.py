"""The longest answer of a grammar, in bytes."""

from __future__ import annotations

import pytest
from guided_grammar.ir import EMPTY, Dispatch, Expr, Rules, alt, chars, repeat, seq, text
from guided_grammar.worst_case import longest

LETTER = chars([(97, 122)])
WIDE = chars([(97, 122), (0x1F600, 0x1F64F)])

CASES: list[tuple[Expr, int | None]] = [
    (EMPTY, 0),
    (text("aé"), 3),
    (LETTER, 1),
    (WIDE, 4),
    (seq(text("ab"), WIDE), 6),
    (alt(text("a"), text("bcd"), EMPTY), 3),
    (repeat(LETTER, 0, 5), 5),
    (repeat(text("ab"), 1, 3), 6),
    (repeat(LETTER, 0, None), None),
    (repeat(alt(), 0, None), 0),
]


@pytest.mark.parametrize(("expr", "size"), CASES)
def test_the_longest_text_is_measured(expr: Expr, size: int | None) -> None:
    assert longest(Rules(), expr) == size


def test_rules_are_measured_once_each_and_may_share() -> None:
    rules = Rules()
    expr: Expr = text("ab")
    for _ in range(200):
        expr = rules.add(seq(expr, expr))
    assert longest(rules, expr) == 2 * 2**200


def test_recursion_and_free_text_are_unbounded_and_dead_rules_do_not_count() -> None:
    rules = Rules()
    nest, dead = rules.reserve(), rules.reserve()
    rules.define(nest, seq(text("{"), alt(nest, EMPTY), text("}")))
    rules.define(dead, seq(text("a"), dead))
    assert longest(rules, nest) is None
    assert longest(rules, alt(text("abc"), seq(dead, text("x")))) == 3
    assert longest(rules, Dispatch((("<t>", rules.add(text("x"))),), loop=False)) is None
