"""Partitions of the Unicode scalar values into atoms: the letters of an automaton."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from guided_grammar.ranges import ALL, Ranges


@dataclass(frozen=True)
class Alphabet:
    """Atom `labels[i]` owns the codes from `starts[i]` up to `starts[i + 1]` (the last one up to the end).

    Atoms are numbered in the order of their smallest code, so equal partitions are equal values.
    """

    starts: tuple[int, ...]
    labels: tuple[int, ...]

    @property
    def size(self) -> int:
        return max(self.labels) + 1

    def atom(self, code: int) -> int:
        return self.labels[bisect_right(self.starts, code) - 1]

    @cached_property
    def atoms(self) -> tuple[Ranges, ...]:
        """The codes of every atom."""
        parts: list[list[tuple[int, int]]] = [[] for _ in range(self.size)]
        ends = [*(start - 1 for start in self.starts[1:]), ALL[-1][1]]
        for start, end, label in zip(self.starts, ends, self.labels, strict=True):
            parts[label] += ((max(start, low), min(end, high)) for low, high in ALL if start <= high and end >= low)
        return tuple(tuple(part) for part in parts)


def _numbered(starts: list[int], keys: list[object]) -> tuple[Alphabet, list[object]]:
    """The alphabet whose atoms are the runs of equal keys, and each atom's key."""
    numbers: dict[object, int] = {}
    out_starts: list[int] = []
    labels: list[int] = []
    for start, key in zip(starts, keys, strict=True):
        label = numbers.setdefault(key, len(numbers))
        if not labels or labels[-1] != label:
            out_starts.append(start)
            labels.append(label)
    return Alphabet(tuple(out_starts), tuple(labels)), list(numbers)


def partition(sets: Iterable[Ranges]) -> tuple[Alphabet, list[frozenset[int]]]:
    """The coarsest alphabet in which every set is a union of atoms, and for each atom the indices of its sets."""
    events: dict[int, list[int]] = {0: []}
    for index, ranges in enumerate(sets):
        for low, high in ranges:
            events.setdefault(low, []).append(index)
            # One past a range that ends before the surrogates is the surrogates' own end: nothing lies between.
            events.setdefault(0xE000 if high == 0xD7FF else high + 1, []).append(index)
    events.pop(ALL[-1][1] + 1, None)
    starts = sorted(events)
    inside: set[int] = set()
    keys: list[object] = []
    for start in starts:
        inside.symmetric_difference_update(_odd(events[start]))
        keys.append(frozenset(inside))
    alphabet, found = _numbered(starts, keys)
    return alphabet, [key for key in found if isinstance(key, frozenset)]


def _odd(indices: list[int]) -> set[int]:
    out: set[int] = set()
    for index in indices:
        out.symmetric_difference_update((index,))
    return out


def refine(a: Alphabet, b: Alphabet) -> tuple[Alphabet, list[tuple[int, int]]]:
    """The coarsest common refinement, and for each of its atoms the atom of `a` and of `b` that holds it."""
    starts = sorted({*a.starts, *b.starts})
    keys: list[object] = [(a.atom(start), b.atom(start)) for start in starts]
    alphabet, found = _numbered(starts, keys)
    return alphabet, [key for key in found if isinstance(key, tuple)]


def merge(alphabet: Alphabet, keys: list[object]) -> tuple[Alphabet, list[int]]:
    """Join the atoms of equal key; also the old atom that stands for each new one."""
    merged, found = _numbered(list(alphabet.starts), [keys[label] for label in alphabet.labels])
    first = {key: atom for atom, key in reversed(list(enumerate(keys)))}
    return merged, [first[key] for key in found]


TRIVIAL = Alphabet((0,), (0,))
