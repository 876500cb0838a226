"""Automata against sets of words: every operation, by enumeration over a small alphabet."""

from __future__ import annotations

import itertools

import pytest
from guided_grammar import automata
from guided_grammar.alphabet import partition
from guided_grammar.automata import ANY, NOTHING, Dfa, literals, make, repeated
from guided_grammar.budget import Budget
from guided_grammar.errors import LimitExceeded
from guided_grammar.limits import Limits
from hypothesis import given, settings
from hypothesis import strategies as st

WORDS = ["".join(word) for n in range(5) for word in itertools.product("ab\U0001f600", repeat=n)]


def language(dfa: Dfa) -> set[str]:
    return {word for word in WORDS if dfa.contains(word)}


@st.composite
def machines(draw: st.DrawFn) -> Dfa:
    alphabet, members = partition([((97, 97),), ((98, 98),), ((0x1F600, 0x1F600),)])
    size = draw(st.integers(1, 6))
    targets = st.integers(-1, size - 1)
    atoms = st.dictionaries(st.integers(0, len(members) - 1), targets)
    rows = [(draw(targets), tuple(sorted(draw(atoms).items()))) for _ in range(size)]
    return make(alphabet, rows, draw(st.lists(st.booleans(), min_size=size, max_size=size)), Budget())


@settings(max_examples=100, deadline=None)
@given(machines(), machines())
def test_boolean_operations_are_those_of_sets(a: Dfa, b: Dfa) -> None:
    x, y, budget = language(a), language(b), Budget()
    assert language(a.intersect(b, budget)) == x & y
    assert language(a.union(b, budget)) == x | y
    assert language(a.difference(b, budget)) == x - y
    assert language(a.complement(budget)) == set(WORDS) - x


@settings(max_examples=100, deadline=None)
@given(machines(), machines())
def test_equal_languages_are_equal_values(a: Dfa, b: Dfa) -> None:
    budget = Budget()
    assert a.complement(budget).complement(budget) == a
    assert a.union(b, budget) == b.union(a, budget)
    assert a.difference(b, budget).union(a.intersect(b, budget), budget) == a
    assert a.intersect(b, budget).complement(budget) == a.complement(budget).union(b.complement(budget), budget)
    assert (a == b) == (a.difference(b, budget).is_empty() and b.difference(a, budget).is_empty())


@settings(max_examples=100, deadline=None)
@given(st.sets(st.sampled_from(WORDS), max_size=12))
def test_literals_hold_exactly_their_texts(words: set[str]) -> None:
    dfa = literals(words, Budget())
    assert language(dfa) == words
    assert set(dfa.finite(12) or ()) == words and dfa.count() == len(words)
    assert dfa.is_finite() and dfa.complement(Budget()).finite(1000) is None


@settings(max_examples=100, deadline=None)
@given(machines())
def test_lengths_and_enumeration(any_letters: Dfa) -> None:
    dfa = any_letters.intersect(repeated(((97, 98), (0x1F600, 0x1F600)), 0, None, Budget()), Budget())
    lengths = {len(word) for word in language(dfa)}
    shortest = dfa.min_length()
    assert (shortest if shortest is not None and shortest < 5 else None) == min(lengths, default=None)
    if dfa.is_finite():
        assert (dfa.max_length() or 0) >= max(lengths, default=0)
    assert dfa.is_empty() == (next(dfa.texts(), None) is None if dfa.is_finite() else False)


@pytest.mark.parametrize(("low", "high"), [(0, None), (0, 3), (2, 2), (1, None), (3, None), (0, 0)])
def test_repeated_counts_code_points(low: int, high: int | None) -> None:
    dfa = repeated(((97, 97), (0x1F600, 0x1F600)), low, high, Budget())
    assert language(dfa) == {w for w in WORDS if "b" not in w and len(w) >= low and (high is None or len(w) <= high)}


def test_constants() -> None:
    assert ANY.is_any() and NOTHING.is_empty() and not NOTHING.is_any()
    assert repeated(((0, 0x10FFFF),), 0, None, Budget()) == ANY == NOTHING.complement(Budget())
    assert literals([], Budget()) == NOTHING == ANY.complement(Budget())
    assert literals(["\ud800"], Budget()) == NOTHING


def test_a_long_chain_and_a_wide_trie_are_cheap() -> None:
    budget = Budget()
    assert literals(["a" * 4096], budget).num_states == 4097
    keys = [f"property_{i * 7919 % 1000:03d}_{i % 13}" for i in range(1000)]
    others = literals(keys, budget).complement(budget)
    assert not others.contains(keys[5]) and others.contains(keys[5] + "x")
    assert budget.steps < 400_000


def test_work_is_counted() -> None:
    with pytest.raises(LimitExceeded, match="compile steps"):
        automata.literals(["a" * 4096], Budget(Limits(steps=1000)))
