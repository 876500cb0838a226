"""Number sets against exact rational arithmetic, and their emitted texts against the sets."""

from __future__ import annotations

import json
import re
from fractions import Fraction

import pytest
from guided_grammar.budget import Budget
from guided_grammar.compiler import compile_spec
from guided_grammar.emit import to_ebnf
from guided_grammar.ir import NOTHING, Rules
from guided_grammar.schema.numbers import Numbers
from guided_grammar.spec import GrammarSpec, Kind
from guided_testing.ebnf import Matcher
from hypothesis import given, settings
from hypothesis import strategies as st

HALVES = [Fraction(n, 4) for n in range(-60, 61)]
bounds = st.none() | st.sampled_from(HALVES)
steps = st.sampled_from([Fraction(n) for n in (1, 2, 3, 5, 12)] + [Fraction(1, 2), Fraction(3, 4), Fraction(1, 100)])


@st.composite
def atoms(draw: st.DrawFn) -> Numbers:
    kind = draw(st.sampled_from(["interval", "multiples", "values"]))
    if kind == "interval":
        return Numbers.interval(draw(bounds), draw(st.booleans()), draw(bounds), draw(st.booleans()))
    if kind == "multiples":
        return Numbers.multiple_of(draw(steps))
    return Numbers.of(draw(st.lists(st.sampled_from(HALVES), max_size=4)))


def combine(children: st.SearchStrategy[Numbers]) -> st.SearchStrategy[Numbers]:
    budget = Budget()
    pairs = st.tuples(children, children)
    return (
        pairs.map(lambda p: p[0].intersect(p[1], budget))
        | pairs.map(lambda p: p[0].union(p[1], budget))
        | children.map(lambda n: n.complement(budget))
    )


sets = st.recursive(atoms(), combine, max_leaves=4)


@settings(max_examples=80, deadline=None)
@given(sets, sets)
def test_operations_are_those_of_sets(a: Numbers, b: Numbers) -> None:
    budget = Budget()
    both, either, none = a.intersect(b, budget), a.union(b, budget), a.complement(budget)
    for value in HALVES:
        assert both.contains(value) == (a.contains(value) and b.contains(value))
        assert either.contains(value) == (a.contains(value) or b.contains(value))
        assert none.contains(value) == (not a.contains(value))
    assert a.intersect(none, budget).is_empty()
    assert a.is_empty() <= (not any(map(a.contains, HALVES)))


@settings(max_examples=80, deadline=None)
@given(sets)
def test_finite_sets_list_their_values(a: Numbers) -> None:
    values = a.finite(500)
    if values is not None:
        assert list(values) == sorted(set(values)) and all(map(a.contains, values))
        assert {v for v in HALVES if a.contains(v)} <= set(values)
        assert a.is_empty() == (not values)


TEXTS = [
    "0",
    "-0",
    "7",
    "-7",
    "12",
    "-12",
    "0.5",
    "-0.5",
    "0.25",
    "3.75",
    "-3.75",
    "1.0",
    "-1.50",
    "00",
    "01",
    "1.",
    ".5",
    "-",
    "",
    "0.01",
    "0.001",
    "14.99",
    "15",
    "15.01",
    "-15",
    "-15.01",
    "123456",
    "-123456",
    "1e2",
    "+1",
    "--1",
    "1.2.3",
    "0.0",
]


def value_of(text: str) -> Fraction | None:
    """The number that a text of our canonical form denotes."""
    import re

    return Fraction(text) if re.fullmatch(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?", text) else None


@settings(max_examples=20, deadline=None)
@given(sets)
def test_emitted_texts_denote_members_and_plain_members_are_emitted(a: Numbers) -> None:
    rules = Rules()
    expr = a.emit(rules, 8, Budget())
    if a.is_empty():
        assert expr == NOTHING
        return
    matcher = Matcher(to_ebnf(rules, expr))
    for text in TEXTS:
        value = value_of(text)
        member = value is not None and a.contains(value)
        accepted = matcher.accepts(text)
        assert accepted <= member, text
        if value is not None and text in {
            "0",
            "7",
            "-7",
            "12",
            "-12",
            "0.5",
            "-0.5",
            "0.25",
            "3.75",
            "-3.75",
            "14.99",
            "15",
            "15.01",
            "-15",
            "-15.01",
        }:
            assert accepted == member, text


def emitted(numbers: Numbers, digits: int = 16) -> Matcher:
    rules = Rules()
    return Matcher(to_ebnf(rules, numbers.emit(rules, digits, Budget())))


def integers(low: int | None, high: int | None) -> Numbers:
    ends = [None if end is None else Fraction(end) for end in (low, high)]
    return Numbers.INTEGERS.intersect(Numbers.interval(ends[0], False, ends[1], False), Budget())


@pytest.mark.parametrize(
    ("numbers", "accepted", "rejected"),
    [
        (
            integers(1, 10**18),
            ["1", "999999999999999999", "1000000000000000000"],
            ["0", "1000000000000000001", "-1", "1.0"],
        ),
        (integers(10**30, None), [str(10**30), str(10**30 + 1)], [str(10**30 - 1), "1"]),
        (integers(-(2**63), 2**64), [str(-(2**63)), str(2**64), "0"], [str(-(2**63) - 1), str(2**64 + 1), "-0"]),
        (Numbers.multiple_of(Fraction(1, 100)), ["0.01", "-3.14", "7", "2.5"], ["0.001", "-0.00"]),
        (Numbers.multiple_of(Fraction(86400)), ["0", "86400", "-172800"], ["864", "8640", "86401"]),
        (Numbers.multiple_of(Fraction(1, 3)), ["1", "-2"], ["0.3"]),
        (Numbers.of([Fraction("12345678901234567890.125")]), ["12345678901234567890.125"], ["12345678901234567890.12"]),
        (
            Numbers.interval(Fraction(0), True, Fraction("1e-20"), True),
            ["0.000000000000000000005"],
            ["0", "0.00000000000000000001", "0.1"],
        ),
        (
            Numbers.interval(Fraction(-1), False, Fraction(1), True),
            ["-1", "0.999", "-0.999", "-1.0", "0"],
            ["1", "1.0", "-1.01"],
        ),
        (Numbers.INTEGERS, ["0", "-9999999999999999"], ["12345678901234567", "1.5", "-0"]),
        (Numbers.ANY, ["0", "-1.5", "0.1234567890123456"], ["01", "1.", "1e5", "-0"]),
        (Numbers.INTEGERS.complement(Budget()), ["0.5", "-7.25", "-0.001"], ["1", "1.0", "-3.000"]),
    ],
)
def test_emission_is_exact_at_any_magnitude(numbers: Numbers, accepted: list[str], rejected: list[str]) -> None:
    matcher = emitted(numbers)
    assert {t: matcher.accepts(t) for t in accepted + rejected} == dict.fromkeys(accepted, True) | dict.fromkeys(
        rejected, False
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [("1", "1"), ("1.0", "1"), ("-3", "-3"), ("0", "0"), ("2.50", "2.5"), ("0.001", "0.001"), ("1e3", "1000")],
)
def test_a_single_number_is_written_in_one_way(value: str, text: str) -> None:
    schema = {"schema": {"const": json.loads(value)}}
    grammar = compile_spec(GrammarSpec(Kind.JSON_SCHEMA, schema)).text
    assert re.fullmatch(rf'root ::= (\w+)\s+\1 ::= "{re.escape(text)}"\s*|root ::= "{re.escape(text)}"\s*', grammar)
