"""Edges shared between states: every state keeps all of its edges, and those over most characters are written once."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from guided_grammar import regex
from guided_grammar.automata import Dfa
from guided_grammar.budget import Budget
from guided_grammar.common_edges import DENSE, common_edges, weight
from guided_grammar.emit import to_ebnf
from guided_grammar.ir import Rules, seq
from guided_grammar.linear import to_expr
from guided_grammar.schema.json_text import QUOTE, JsonWriter

PATTERNS = [
    "request\\.header",
    "(GET|HEAD|POST|PUT)",
    "^(?:[^a]|a[^b]|ab[^c]|abc[^d])*$",
    "[0-9]{4}-[0-9]{2}-[0-9]{2}",
    "'one'|\"two\"|\\\\three",
    "^[a-z]+(_[a-z]+)*$",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_parted_state_has_each_of_its_edges_once(pattern: str) -> None:
    dfa = regex.search_language(pattern, Budget(), "")
    for state, (shared, own) in common_edges(dfa, range(dfa.num_states), Budget()).items():
        edges = [edge for group in (*shared, own) for edge in group]
        pairs = sorted((low, high, target) for ranges, target in edges for low, high in ranges)
        assert all(a[1] < b[0] for a, b in pairwise(pairs)), "overlap"
        assert _steps(edges) == _steps(list(dfa.edges[state]))


@pytest.mark.parametrize("pattern", PATTERNS[:2])
def test_classes_of_most_characters_do_not_grow_with_a_searched_text(pattern: str) -> None:
    longer = pattern + "abcdefghijklmnop"
    assert _num_dense(longer) <= _num_dense(pattern) + 1


def test_the_weight_of_a_class_tells_letters_from_digits() -> None:
    assert weight(((0x61, 0x7A),)) >= DENSE > weight(((0x30, 0x39),))
    assert weight(((0x80, 0x10FFFF),)) >= DENSE


def _steps(edges: list[tuple[tuple[tuple[int, int], ...], int]]) -> dict[int, int]:
    return {c: target for ranges, target in edges for low, high in ranges for c in range(low, min(high, 0x180) + 1)}


def _num_dense(pattern: str) -> int:
    dfa: Dfa = regex.search_language(pattern, Budget(), "")
    rules = Rules()
    text = to_ebnf(rules, seq(QUOTE, to_expr(dfa, JsonWriter(), rules, Budget())))
    return len(re.findall(r"\[\^", text))
