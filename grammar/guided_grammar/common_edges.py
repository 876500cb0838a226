"""Edges that many states of an automaton have in common, told apart from each state's own.

A state over most characters costs xgrammar what a walk over most of a vocabulary costs. An automaton that looks for a
text has such a state for each of its beginnings, and nearly all of their edges are the same; as rules of their own,
those edges cost that walk once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from guided_grammar.automata import Dfa
from guided_grammar.budget import Budget
from guided_grammar.minimise import DEAD
from guided_grammar.ranges import Ranges, normalise

Edge = tuple[Ranges, int]
Edges = tuple[Edge, ...]
Parted = tuple[tuple[Edges, ...], Edges]
"""(groups of edges that other states have too, the edges of this state only)."""

DENSE = 24
_BEYOND_ASCII = 32
_MIN_STATES = 3
_BLOCK = 5
_MAX_CELLS = 1 << 18


def weight(ranges: Ranges) -> int:
    """How much of a vocabulary begins with a character of `ranges`, roughly: in letters."""
    ascii_ones = sum(min(high, 0x7E) - low + 1 for low, high in ranges if low <= 0x7E)
    return ascii_ones + (_BEYOND_ASCII if ranges[-1][1] > 0x7F else 0)


def common_edges(dfa: Dfa, states: Iterable[int], budget: Budget) -> dict[int, Parted]:
    """The edges of those of `states` that share most of them with others; all edges of a state, each once."""
    families: dict[int, list[int]] = {}
    for state in states:
        edges = dfa.edges[state]
        ranges, target = max(edges, key=lambda edge: weight(edge[0]), default=((), DEAD))
        if ranges and weight(ranges) >= DENSE:
            families.setdefault(target, []).append(state)
    parted: dict[int, Parted] = {}
    for family in families.values():
        if len(family) >= _MIN_STATES and len(family) * dfa.alphabet.size <= _MAX_CELLS:
            budget.spend(1 + len(family) * dfa.alphabet.size // 8)
            parted.update(_Family(dfa, family).parts())
    return parted


class _Family:
    """States that go to the same state with most characters. A column is a set of atoms that none tells apart."""

    def __init__(self, dfa: Dfa, states: list[int]) -> None:
        self._codes, self._states = dfa.alphabet.atoms, states
        rows = [_row(dfa, state) for state in states]
        columns: dict[tuple[int, ...], list[int]] = {}
        for atom, column in enumerate(zip(*rows, strict=True)):
            columns.setdefault(column, []).append(atom)
        self._columns = list(columns.items())
        counts = [Counter(column).most_common(1)[0] for column, _ in self._columns]
        self._usual = [target for target, _ in counts]
        whole = [at for at, (_, count) in enumerate(counts) if count == len(states)]
        most = [at for at, (_, count) in enumerate(counts) if _MIN_STATES <= count < len(states)]
        blocks = [most[i : i + _BLOCK] for i in range(0, len(most), _BLOCK)]
        self._groups = [group for group in (whole, *blocks) if group]
        self._others = sorted(set(range(len(counts))) - {*whole, *most})

    def parts(self) -> Iterator[tuple[int, Parted]]:
        for row, state in enumerate(self._states):
            shared: list[Edges] = []
            own = list(self._others)
            for group in self._groups:
                usual = [at for at in group if self._target(at, row) == self._usual[at]]
                own += (at for at in group if self._target(at, row) != self._usual[at])
                pieces = [usual] if len(usual) == len(group) else [[at] for at in usual]
                shared += (edges for piece in pieces if (edges := self._edges(piece, row)))
            yield state, (tuple(shared), self._edges(own, row))

    def _target(self, at: int, row: int) -> int:
        return self._columns[at][0][row]

    def _edges(self, columns: list[int], row: int) -> Edges:
        """The edges of one state with the characters of `columns`."""
        atoms: dict[int, list[int]] = {}
        for at in columns:
            atoms.setdefault(self._target(at, row), []).extend(self._columns[at][1])
        atoms.pop(DEAD, None)
        found = ((normalise(pair for atom in part for pair in self._codes[atom]), t) for t, part in atoms.items())
        return tuple(sorted(found))


def _row(dfa: Dfa, state: int) -> list[int]:
    default, others = dfa.rows[state]
    row = [default] * dfa.alphabet.size
    for atom, target in others:
        row[atom] = target
    return row
