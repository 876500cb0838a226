"""Trim, minimise and number an automaton, so that equal languages become equal values."""

from __future__ import annotations

from guided_grammar.alphabet import TRIVIAL, Alphabet, merge
from guided_grammar.budget import Budget

Row = tuple[int, tuple[tuple[int, int], ...]]
"""(default target, exceptions as (atom, target)); target -1 is the dead state."""
DEAD = -1

Canonical = tuple[Alphabet, tuple[Row, ...], tuple[bool, ...]]


def canonical(alphabet: Alphabet, rows: list[Row], accepting: list[bool], budget: Budget) -> Canonical:
    """The minimal automaton of the same language: reachable, every state live, numbered breadth-first by atom."""
    budget.spend(sum(2 + 2 * len(others) for _, others in rows))
    rows = [_normal(default, list(others), alphabet.size) for default, others in rows]
    live = _live_states(rows, accepting)
    if 0 not in live:
        return TRIVIAL, ((DEAD, ()),), (False,)
    classes = _Partition(rows, accepting, live, alphabet.size, budget).run()
    members = {classes[state]: state for state in live}
    quotient = {name: _plain(rows[state], classes, alphabet.size) for name, state in members.items()}
    columns: list[list[tuple[int, int]]] = [[] for _ in range(alphabet.size)]
    for name, (_, others) in quotient.items():
        for atom, target in others:
            columns[atom].append((name, target))
    merged, chosen = merge(alphabet, [tuple(column) for column in columns])
    renamed = {atom: new for new, atom in enumerate(chosen)}
    small = {name: _narrow(row, renamed, merged.size) for name, row in quotient.items()}
    order = _breadth_first(small, classes[0])
    number = {name: index for index, name in enumerate(order)} | {DEAD: DEAD}
    final = tuple(
        (number[d], tuple((atom, number[t]) for atom, t in others)) for d, others in (small[name] for name in order)
    )
    return merged, final, tuple(accepting[members[name]] for name in order)


def _live_states(rows: list[Row], accepting: list[bool]) -> set[int]:
    forward = _closure([0], [[default, *(t for _, t in others)] for default, others in rows])
    sources: list[list[int]] = [[] for _ in rows]
    for state in forward:
        default, others = rows[state]
        for target in {default, *(t for _, t in others)} - {DEAD}:
            sources[target].append(state)
    return _closure([state for state in forward if accepting[state]], sources)


def _closure(seeds: list[int], following: list[list[int]]) -> set[int]:
    seen = set(seeds)
    stack = list(seeds)
    while stack:
        for target in following[stack.pop()]:
            if target != DEAD and target not in seen:
                seen.add(target)
                stack.append(target)
    return seen


def _normal(default: int, others: list[tuple[int, int]], size: int) -> Row:
    """The same row with its most frequent target as default; of equally frequent ones, that of the smallest atom."""
    others = sorted([pair for pair in others if pair[1] != default])
    if 2 * len(others) < size:
        return default, tuple(others)
    counts: dict[int, int] = {}
    for _, target in others:
        counts[target] = counts.get(target, 0) + 1
    if max(counts.values(), default=0) < size - len(others):
        return default, tuple(others)
    listed = dict(others)
    counts = {}
    for atom in range(size):
        target = listed.get(atom, default)
        counts[target] = counts.get(target, 0) + 1
    best = max(counts, key=lambda target: counts[target])  # the first of equals: dicts keep the order of atoms
    full = ((atom, listed.get(atom, default)) for atom in range(size))
    return best, tuple(pair for pair in full if pair[1] != best)


def _plain(row: Row, classes: list[int], size: int) -> Row:
    default, others = row
    mapped = [(atom, classes[t] if t != DEAD else DEAD) for atom, t in others]
    return _normal(classes[default] if default != DEAD else DEAD, mapped, size)


def _narrow(row: Row, renamed: dict[int, int], size: int) -> Row:
    default, others = row
    return _normal(default, [(renamed[atom], target) for atom, target in others if atom in renamed], size)


def _breadth_first(rows: dict[int, Row], start: int) -> list[int]:
    order, seen = [start], {start, DEAD}
    for name in order:
        default, others = rows[name]
        listed = [atom for atom, _ in others]
        free = next((i for i, atom in enumerate(listed) if i != atom), len(listed))
        for _, target in sorted([*others, (free, default)]):
            if target not in seen:
                seen.add(target)
                order.append(target)
    return order


class _Partition:
    """Refinement by signatures; of a split class the largest part keeps its name, so states move O(log n) times."""

    def __init__(self, rows: list[Row], accepting: list[bool], live: set[int], size: int, budget: Budget) -> None:
        self._rows, self._size, self._budget = rows, size, budget
        self._classes = [(int(accepting[state]) if state in live else DEAD) for state in range(len(rows))]
        self._blocks: list[set[int]] = [set(), set()]
        self._sources: list[list[int]] = [[] for _ in rows]
        for state in live:
            self._blocks[self._classes[state]].add(state)
            for target in {rows[state][0], *(t for _, t in rows[state][1])} & live:
                self._sources[target].append(state)
        self._dirty = {name: set(block) for name, block in enumerate(self._blocks) if block}

    def run(self) -> list[int]:
        """The class of every state, -1 for dead ones."""
        while self._dirty:
            name, dirty = self._dirty.popitem()
            moved = self._split(name, dirty)
            for state in moved:
                for source in self._sources[state]:
                    self._dirty.setdefault(self._classes[source], set()).add(source)
        return self._classes

    def _split(self, name: int, dirty: set[int]) -> list[int]:
        """Split one class by the signatures of its dirty states; the states that got a new class."""
        block = self._blocks[name]
        clean = next((state for state in block if state not in dirty), None)
        stays = None if clean is None else self._signature(clean)
        groups: dict[Row, set[int]] = {}
        for state in dirty:
            groups.setdefault(self._signature(state), set()).add(state)
        parts = sorted((group for signature, group in groups.items() if signature != stays), key=len)
        num_staying = len(block) - sum(map(len, parts))
        if parts and num_staying < len(parts[-1]):
            largest = parts.pop()
            if num_staying:
                parts.append(block.difference(largest, *parts))
        for part in parts:
            block -= part
            for state in part:
                self._classes[state] = len(self._blocks)
            self._blocks.append(part)
        return [state for part in parts for state in part]

    def _signature(self, state: int) -> Row:
        self._budget.spend(2 + 2 * len(self._rows[state][1]))
        return _plain(self._rows[state], self._classes, self._size)
