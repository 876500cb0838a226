"""Sets of Unicode scalar values as sorted, disjoint, non-adjacent, inclusive ranges."""

from __future__ import annotations

from collections.abc import Iterable

Ranges = tuple[tuple[int, int], ...]

MAX_SCALAR = 0x10FFFF
SURROGATES = (0xD800, 0xDFFF)
ALL: Ranges = ((0, 0xD7FF), (0xE000, MAX_SCALAR))
"""Every Unicode scalar value."""


def normalise(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The set that `ranges` cover in any order, surrogates removed. D7FF and E000 count as not adjacent."""
    out: list[tuple[int, int]] = []
    start, end = 0, -1
    for low, high in sorted(ranges):
        if low > high:
            continue
        if low > end + 1 or end < start:
            if start <= end:
                out += _without_surrogates(start, end)
            start, end = low, high
        elif high > end:
            end = high
    if start <= end:
        out += _without_surrogates(start, end)
    return tuple(out)


def _without_surrogates(low: int, high: int) -> Ranges:
    if high < SURROGATES[0] or low > SURROGATES[1]:
        return ((low, high),)
    parts = ((low, SURROGATES[0] - 1), (SURROGATES[1] + 1, high))
    return tuple(part for part in parts if part[0] <= part[1])


def union(a: Ranges, b: Ranges) -> Ranges:
    return normalise(a + b)


def complement(a: Ranges) -> Ranges:
    """Scalar values not in `a`."""
    gaps: list[tuple[int, int]] = []
    start = 0
    for low, high in a:
        gaps.append((start, low - 1))
        start = high + 1
    gaps.append((start, MAX_SCALAR))
    return normalise(gaps)


def intersect(a: Ranges, b: Ranges) -> Ranges:
    out: list[tuple[int, int]] = []
    i = j = 0
    while i < len(a) and j < len(b):
        low, high = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if low <= high:
            out.append((low, high))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return tuple(out)


def difference(a: Ranges, b: Ranges) -> Ranges:
    return intersect(a, complement(b))


def contains(a: Ranges, code: int) -> bool:
    return any(low <= code <= high for low, high in a)


def size(a: Ranges) -> int:
    return sum(high - low + 1 for low, high in a)
