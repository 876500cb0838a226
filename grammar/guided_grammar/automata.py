"""Deterministic automata over Unicode scalar values, always minimal: equal languages are equal values.

A row is (default, exceptions): the target of most atoms, and the atoms that go elsewhere. Target -1 is the dead state.
State 0 is the start. Sparse rows keep both a trie and its complement small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from guided_grammar.alphabet import TRIVIAL, Alphabet, partition, refine
from guided_grammar.budget import Budget
from guided_grammar.minimise import DEAD, Row, canonical
from guided_grammar.ranges import Ranges, normalise


@dataclass(frozen=True)
class Dfa:
    """A regular language. Compare with `==`; build with `ANY`, `NOTHING`, `literals`, `repeated` or `make`."""

    alphabet: Alphabet
    rows: tuple[Row, ...]
    accepting: tuple[bool, ...]

    @property
    def num_states(self) -> int:
        return len(self.rows)

    @property
    def num_edges(self) -> int:
        return sum(1 + len(row[1]) for row in self.rows)

    def is_empty(self) -> bool:
        return not any(self.accepting)

    def is_any(self) -> bool:
        return self == ANY

    def step(self, state: int, code: int) -> int:
        """The state after `code`, -1 if no text of the language goes on that way."""
        if state == DEAD:
            return DEAD
        default, others = self._maps[state]
        return others.get(self.alphabet.atom(code), default)

    def reached(self, text: str) -> int:
        """The state after `text`, -1 if no text of the language begins with it."""
        state = 0
        for char in text:
            state = self.step(state, ord(char))
        return state

    def contains(self, text: str) -> bool:
        state = self.reached(text)
        return state != DEAD and self.accepting[state]

    @cached_property
    def _maps(self) -> tuple[tuple[int, dict[int, int]], ...]:
        return tuple((default, dict(others)) for default, others in self.rows)

    @cached_property
    def edges(self) -> tuple[tuple[tuple[Ranges, int], ...], ...]:
        """For each state, (codes, target) with disjoint codes and distinct live targets, by smallest code."""
        return tuple(self._edges_of(row) for row in self.rows)

    def _edges_of(self, row: Row) -> tuple[tuple[Ranges, int], ...]:
        default, others = row
        parts: dict[int, list[int]] = {}
        listed = dict(others)
        atoms = listed if default == DEAD else range(self.alphabet.size)
        for atom in atoms:
            target = listed.get(atom, default)
            if target != DEAD:
                parts.setdefault(target, []).append(atom)
        codes = self.alphabet.atoms
        found = ((normalise(r for atom in part for r in codes[atom]), target) for target, part in parts.items())
        return tuple(sorted(found))

    @cached_property
    def targets(self) -> tuple[frozenset[int], ...]:
        """Live successors of every state."""
        found = ({default, *(target for _, target in others)} for default, others in self.rows)
        return tuple(frozenset(targets - {DEAD}) for targets in found)

    def rest(self, state: int, budget: Budget) -> Dfa:
        """What may follow a text that leads to `state`."""
        budget.spend(self.num_edges)
        order = [state, *(other for other in range(self.num_states) if other != state)]
        moved = {old: new for new, old in enumerate(order)} | {DEAD: DEAD}
        old_rows = [self.rows[old] for old in order]
        rows: list[Row] = [(moved[default], tuple((a, moved[t]) for a, t in others)) for default, others in old_rows]
        return make(self.alphabet, rows, [self.accepting[old] for old in order], budget)

    def is_finite(self) -> bool:
        return self.max_length() is not None

    def min_length(self) -> int | None:
        """Length of a shortest text, None when there is none."""
        return self.distance({0})

    def distance(self, states: Iterable[int]) -> int | None:
        """The fewest further characters after which one of `states` accepts, None if never."""
        layer, length = set(states), 0
        seen = set(layer)
        while layer:
            if any(self.accepting[state] for state in layer):
                return length
            layer = {target for state in layer for target in self.targets[state]} - seen
            seen |= layer
            length += 1
        return None

    def max_length(self) -> int | None:
        """Length of a longest text (0 for the empty language), None when unbounded."""
        order = self._topological()
        if order is None:
            return None
        longest = [0] * self.num_states
        for state in reversed(order):
            longest[state] = max((1 + longest[target] for target in self.targets[state]), default=0)
        return longest[0]

    def _topological(self) -> list[int] | None:
        incoming = [0] * self.num_states
        for targets in self.targets:
            for target in targets:
                incoming[target] += 1
        ready = [state for state, count in enumerate(incoming) if count == 0]
        order: list[int] = []
        while ready:
            order.append(ready.pop())
            for target in self.targets[order[-1]]:
                incoming[target] -= 1
                if incoming[target] == 0:
                    ready.append(target)
        return order if len(order) == self.num_states else None

    def texts(self) -> Iterator[str]:
        """Every text of the language, shortest first, endless for an infinite one."""
        layer = [("", 0)]
        while layer:
            following: list[tuple[str, int]] = []
            for prefix, state in layer:
                if self.accepting[state]:
                    yield prefix
                for ranges, target in self.edges[state]:
                    following += ((prefix + chr(c), target) for low, high in ranges for c in range(low, high + 1))
            layer = following

    def finite(self, limit: int) -> tuple[str, ...] | None:
        """All texts when there are at most `limit`, else None."""
        if not self.is_finite() or self.count() > limit:
            return None
        return tuple(self.texts())

    def count(self) -> int:
        """How many texts a finite language has."""
        order = self._topological()
        assert order is not None
        total = [int(accepts) for accepts in self.accepting]
        for state in reversed(order):
            for ranges, target in self.edges[state]:
                total[state] += total[target] * sum(high - low + 1 for low, high in ranges)
        return total[0]

    def intersect(self, other: Dfa, budget: Budget) -> Dfa:
        return _product(self, other, lambda a, b: a and b, budget)

    def union(self, other: Dfa, budget: Budget) -> Dfa:
        return _product(self, other, lambda a, b: a or b, budget)

    def difference(self, other: Dfa, budget: Budget) -> Dfa:
        return _product(self, other, lambda a, b: a and not b, budget)

    def complement(self, budget: Budget) -> Dfa:
        """Every text of Unicode scalar values that is not in the language."""
        return _product(ANY, self, lambda a, b: a and not b, budget)


def make(alphabet: Alphabet, rows: list[Row], accepting: list[bool], budget: Budget) -> Dfa:
    """The minimal automaton of any complete or partial one with start state 0."""
    return Dfa(*canonical(alphabet, rows, accepting, budget))


ANY = Dfa(TRIVIAL, ((0, ()),), (True,))
"""Every text."""
NOTHING = Dfa(TRIVIAL, ((DEAD, ()),), (False,))


def literals(values: Iterable[str], budget: Budget) -> Dfa:
    """Exactly these texts. Lone surrogates are no scalar values: texts with one are not in any language."""
    trie: list[dict[int, int]] = [{}]
    accepting = [False]
    for value in values:
        if any(0xD800 <= ord(char) <= 0xDFFF for char in value):
            continue
        state = 0
        for char in value:
            state = trie[state].setdefault(ord(char), len(trie))
            if state == len(trie):
                trie.append({})
                accepting.append(False)
        accepting[state] = True
    codes = sorted({code for node in trie for code in node})
    alphabet, members = partition(((code, code),) for code in codes)
    atoms = {codes[index]: atom for atom, inside in enumerate(members) for index in inside}
    rows: list[Row] = [(DEAD, tuple(sorted((atoms[c], t) for c, t in node.items()))) for node in trie]
    budget.spend(len(trie))
    return make(alphabet, rows, accepting, budget)


def repeated(ranges: Ranges, low: int, high: int | None, budget: Budget) -> Dfa:
    """`low` to `high` characters (None: no bound), each out of `ranges`."""
    alphabet, members = partition([ranges])
    inside = [atom for atom, sets in enumerate(members) if sets]
    last = low if high is None else high
    rows: list[Row] = []
    for count in range(last + 1):
        target = count + 1 if count < last else count if high is None else DEAD
        rows.append((DEAD, tuple((atom, target) for atom in inside) if target != DEAD else ()))
    return make(alphabet, rows, [count >= low for count in range(last + 1)], budget)


def prefixed(char: str, dfa: Dfa, budget: Budget) -> Dfa:
    """`char` before every text."""
    only, members = partition([((ord(char), ord(char)),)])
    alphabet, pairs = refine(only, dfa.alphabet)
    fine = _split(pairs, 1)
    rows: list[Row] = [(DEAD, tuple((atom, 1) for atom, pair in enumerate(pairs) if members[pair[0]]))]
    for state in range(dfa.num_states):
        default, others = _fine_row(dfa, state, fine)
        moved = ((atom, target + 1 if target != DEAD else DEAD) for atom, target in others.items())
        rows.append((default + 1 if default != DEAD else DEAD, tuple(moved)))
    return make(alphabet, rows, [False, *dfa.accepting], budget)


def _product(a: Dfa, b: Dfa, keep: Callable[[bool, bool], bool], budget: Budget) -> Dfa:
    alphabet, pairs = refine(a.alphabet, b.alphabet)
    fine_a, fine_b = _split(pairs, 0), _split(pairs, 1)
    numbers: dict[tuple[int, int], int] = {(0, 0): 0}
    order = [(0, 0)]
    rows: list[Row] = []
    for p, q in order:
        default_p, others_p = _fine_row(a, p, fine_a)
        default_q, others_q = _fine_row(b, q, fine_b)
        atoms = [*others_p, *(atom for atom in others_q if atom not in others_p)]
        budget.spend(2 + 2 * len(atoms))
        pairs_of = [(others_p.get(atom, default_p), others_q.get(atom, default_q)) for atom in atoms]
        ids: list[int] = []
        for pair in [(default_p, default_q), *pairs_of]:
            known = numbers.get(pair)
            if known is None:
                known = numbers[pair] = len(order) if _live(keep, pair) else DEAD
                if known != DEAD:
                    order.append(pair)
            ids.append(known)
        rows.append((ids[0], tuple(zip(atoms, ids[1:], strict=True))))
    flags = [keep(p != DEAD and a.accepting[p], q != DEAD and b.accepting[q]) for p, q in order]
    return make(alphabet, rows, flags, budget)


def _live(keep: Callable[[bool, bool], bool], pair: tuple[int, int]) -> bool:
    """Whether a pair of states can still accept anything."""
    p, q = pair[0] != DEAD, pair[1] != DEAD
    return any(keep(x, y) for x in {False, p} for y in {False, q})


def _split(pairs: list[tuple[int, int]], side: int) -> dict[int, list[int]]:
    fine: dict[int, list[int]] = {}
    for atom, pair in enumerate(pairs):
        fine.setdefault(pair[side], []).append(atom)
    return fine


def _fine_row(dfa: Dfa, state: int, fine: dict[int, list[int]]) -> tuple[int, dict[int, int]]:
    if state == DEAD:
        return DEAD, {}
    default, others = dfa.rows[state]
    return default, {atom: target for coarse, target in others for atom in fine[coarse]}
