"""Passes over the tiles of a row: maxima and sums, the likeliest tokens, the draw."""

from __future__ import annotations

from typing import Any

import numpy as np

from guided_kernels._cpu_arguments import Scratch
from guided_kernels._cpu_tile import (
    TILE,
    Source,
    extremes,
    is_empty,
    is_plain,
    load,
    num_tiles,
    part_of,
    plain_peak,
    total,
    weigh,
)
from guided_kernels._numba import NEG_INF, exp2, jit


@jit
def scan(source: Source, scratch: Scratch, scale: Any) -> tuple[Any, Any, bool]:
    """Put the row into scratch.x; its best logit, sum of 2**((x - best) * scale), and whether one is NaN or +inf.

    Fills tile_max, and tile_sum unless scale is 0.
    """
    best, bad = NEG_INF, False
    tiles = num_tiles(source.size)
    for tile in range(tiles):
        scratch.tile_max[tile], scratch.tile_sum[tile] = NEG_INF, 0.0
        if is_empty(source, tile):
            continue
        part = _loaded(source, scratch, tile)
        high, broken = extremes(part)
        bad |= broken
        scratch.tile_max[tile] = high
        best = max(best, high)
        if scale > 0 and high > NEG_INF:
            scratch.tile_sum[tile] = total(part, high, scale)
    for tile in range(tiles):
        if scratch.tile_sum[tile] > 0:
            scratch.tile_sum[tile] *= exp2((scratch.tile_max[tile] - best) * scale)
    return best, scratch.tile_sum[:tiles].sum(), bad


@jit
def scan_peaks(source: Source, scratch: Scratch) -> tuple[Any, bool]:
    """The best logit, and whether one is NaN or +inf. Fills tile_max, and x of some tiles only."""
    best, bad = NEG_INF, False
    for tile in range(num_tiles(source.size)):
        scratch.tile_max[tile] = NEG_INF
        if is_empty(source, tile):
            continue
        if is_plain(source, tile):
            high, broken = plain_peak(source, tile)
        else:
            high, broken = extremes(_loaded(source, scratch, tile))
        bad |= broken
        scratch.tile_max[tile] = high
        best = max(best, high)
    return best, bad


@jit
def _loaded(source: Source, scratch: Scratch, tile: int) -> Any:
    """The tile's share of scratch.x, with its logits."""
    part = part_of(scratch.x, tile, source.size)
    load(source, tile * TILE, part)
    return part


@jit
def first_best(source: Source, scratch: Scratch, best: Any) -> int:
    """The first position that holds the best logit, after `scan_peaks`."""
    for tile in range(num_tiles(source.size)):
        if scratch.tile_max[tile] == best:
            part = _loaded(source, scratch, tile)
            for i in range(len(part)):
                if part[i] == best:
                    return tile * TILE + i
    return -1


@jit
def pick(weight: Any, target: Any) -> tuple[int, Any]:
    """The first index at which the running sum exceeds target, and what of target is left there.

    If rounding leaves none, the last index with a weight, and all the rest.
    """
    chosen, rest = -1, target
    for i in range(len(weight)):
        w = weight[i]
        if w > 0:
            chosen = i
            if w > rest:
                return chosen, rest
            rest -= w
    return chosen, np.inf


@jit
def draw(scratch: Scratch, size: int, best: Any, scale: Any, target: Any) -> int:
    """The position at which the running sum of weights exceeds target, after `scan`."""
    tile, rest = pick(scratch.tile_sum[: num_tiles(size)], target)
    weight = part_of(scratch.weight, tile, size)
    weigh(part_of(scratch.x, tile, size), best, scale, weight)
    return tile * TILE + pick(weight, rest)[0]


@jit
def likeliest(scratch: Scratch, size: int, positions: Any, values: Any) -> int:
    """The len(positions) largest logits, first position first among equals, after `scan`; how many there are."""
    found, wanted = 0, len(positions)
    for tile in range(num_tiles(size)):
        if found == wanted and not scratch.tile_max[tile] > values[wanted - 1]:
            continue
        if scratch.tile_max[tile] == NEG_INF:
            continue
        part = part_of(scratch.x, tile, size)
        for i in range(len(part)):
            if part[i] > NEG_INF and (found < wanted or part[i] > values[wanted - 1]):
                found = min(found + 1, wanted)
                _insert(positions, values, found, tile * TILE + i, part[i])
    return found


@jit
def _insert(positions: Any, values: Any, found: int, position: int, value: Any) -> None:
    slot = found - 1
    while slot > 0 and values[slot - 1] < value:
        values[slot], positions[slot] = values[slot - 1], positions[slot - 1]
        slot -= 1
    values[slot], positions[slot] = value, position
