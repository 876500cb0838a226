"""Sets of string values, and the JSON texts they are emitted as."""

from __future__ import annotations

import json
import random

import pytest
from guided_grammar.budget import Budget
from guided_grammar.emit import to_ebnf
from guided_grammar.ir import NOTHING, Rules
from guided_grammar.schema.strings import Strings
from guided_testing.ebnf import Matcher
from hypothesis import given, settings
from hypothesis import strategies as st

VALUES = [
    "",
    "a",
    "b",
    "ab",
    "ba",
    "aab",
    "abab",
    "é",
    "😀",
    "😀a",
    '"',
    "\\",
    "\n",
    'a"',
    "\x01b",
    "aaaa",
    "\ud7ff\ue000",
]


def emitted(strings: Strings) -> Matcher:
    rules = Rules()
    return Matcher(to_ebnf(rules, strings.emit(rules, Budget())))


def text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


@st.composite
def atoms(draw: st.DrawFn) -> Strings:
    kind = draw(st.sampled_from(["length", "pattern", "values"]))
    if kind == "length":
        low = draw(st.integers(0, 3))
        return Strings.length(low, draw(st.none() | st.integers(low, 4)))
    if kind == "pattern":
        return Strings.pattern(draw(st.sampled_from(["a", "^[ab]*$", "^.{1,2}$", "b$", r"\W", '"', r"\\"])), Budget())
    return Strings.of(draw(st.lists(st.sampled_from(VALUES), max_size=4)))


def combine(children: st.SearchStrategy[Strings]) -> st.SearchStrategy[Strings]:
    pairs = st.tuples(children, children)
    return (
        pairs.map(lambda p: p[0].intersect(p[1], Budget()))
        | pairs.map(lambda p: p[0].union(p[1], Budget()))
        | children.map(lambda s: s.complement(Budget()))
    )


sets = st.recursive(atoms(), combine, max_leaves=4)


@settings(max_examples=60, deadline=None)
@given(sets, sets)
def test_operations_are_those_of_sets(a: Strings, b: Strings) -> None:
    budget = Budget()
    both, either, none = a.intersect(b, budget), a.union(b, budget), a.complement(budget)
    for value in VALUES:
        assert both.contains(value) == (a.contains(value) and b.contains(value))
        assert either.contains(value) == (a.contains(value) or b.contains(value))
        assert none.contains(value) == (not a.contains(value))
    assert a.intersect(none, budget).is_empty()
    assert a.is_empty() <= (not any(map(a.contains, VALUES)))


@settings(max_examples=25, deadline=None)
@given(sets)
def test_emitted_texts_are_those_of_the_values(strings: Strings) -> None:
    if strings.is_empty():
        assert strings.emit(Rules(), Budget()) == NOTHING
        return
    matcher = emitted(strings)
    assert {v: matcher.accepts(text(v)) for v in VALUES} == {v: strings.contains(v) for v in VALUES}


@settings(max_examples=60, deadline=None)
@given(sets)
def test_finite_sets_list_their_values(strings: Strings) -> None:
    values = strings.finite(40)
    if values is not None:
        assert list(values) == sorted(set(values))
        assert {v for v in VALUES if strings.contains(v)} == set(values) & set(VALUES)
        assert (not values) == strings.is_empty()


def test_what_is_no_canonical_json_string_is_never_emitted() -> None:
    for strings in (Strings.ANY, Strings.length(1, None), Strings.length(0, 100), Strings.pattern("a", Budget())):
        matcher = emitted(strings)
        assert matcher.accepts('"a"')
        for bad in [
            '"a\n"',
            '"a\x00"',
            '"a\\"',
            '"a',
            "a",
            '"\\u0061a"',
            '"a\\/"',
            '"a\\u001F"',
            '"a\ud800"',
            '"a"a"',
            '"a\\ud83d"',
        ]:
            assert not matcher.accepts(bad), bad


def test_every_control_character_has_one_spelling() -> None:
    matcher = emitted(Strings.ANY)
    for code in range(0x20):
        assert matcher.accepts(text(chr(code)))
        short = text(chr(code)) != f'"\\u{code:04x}"'
        assert matcher.accepts(f'"\\u{code:04x}"') == (not short)


BOUNDS = [(0, 0), (0, 1), (1, 1), (2, 2), (0, 3), (2, 5), (3, 8), (1, None), (3, None), (8, None)]


@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_small_length_bounds_are_exact_with_escapes(low: int, high: int | None) -> None:
    strings, matcher = Strings.length(low, high), emitted(Strings.length(low, high))
    generator = random.Random(low)
    for _ in range(150):
        size = generator.randrange(0, (low if high is None else high) + 3)
        value = "".join(generator.choice('aé😀"\\\n\x02') for _ in range(size))
        assert matcher.accepts(text(value)) == strings.contains(value), value


@pytest.mark.parametrize(("low", "high"), [(0, 9), (1, 40), (10, 100), (200, 200), (0, 1000), (12, None), (1, 5000)])
def test_large_length_bounds_are_exact_without_escapes_and_never_exceeded_with_them(low: int, high: int | None) -> None:
    matcher = emitted(Strings.length(low, high))
    top = high if high is not None else low + 50
    for size in {low, max(low - 1, 0), top, top + 1, (low + top) // 2}:
        inside = low <= size and (high is None or size <= high)
        assert matcher.accepts(text("é" * size)) == inside, size
    generator = random.Random(top)
    for _ in range(100):
        size = generator.choice([low - 1, low, top, top + 1, generator.randrange(top)])
        value = "".join(generator.choice("\n") if generator.random() < 0.1 else "a" for _ in range(max(size, 0)))
        inside = low <= len(value) and (high is None or len(value) <= high)
        assert matcher.accepts(text(value)) <= inside, value


@pytest.mark.parametrize("high", [50, 255, 1000])
def test_a_text_of_half_the_bound_may_hold_escapes_now_and_then(high: int) -> None:
    matcher = emitted(Strings.length(1, high))
    word = "word " * 20
    lines = "\n".join(word[: high // 14] for _ in range(7))[: high // 2]
    assert matcher.accepts(text(lines)) and matcher.accepts(text('say "hi"')) and matcher.accepts(text("\n"))


def test_lone_surrogates_belong_to_no_set() -> None:
    assert Strings.of(["\ud800"]).is_empty()
    assert not Strings.ANY.contains("\ud800") or not emitted(Strings.ANY).accepts('"\ud800"')


def test_many_values_and_their_complement() -> None:
    names = [f"property_{i * 7919 % 1000}" for i in range(300)]
    listed, others = emitted(Strings.of(names)), emitted(Strings.of(names).complement(Budget()))
    for name in [*names[::37], "property_", "other", "property_1000", ""]:
        assert listed.accepts(text(name)) == (name in names)
        assert others.accepts(text(name)) == (name not in names)
