"""top-k, min-p and top-p on a row held in scratch: a token dropped loses its weight and becomes -inf."""

from __future__ import annotations

from typing import Any

import numpy as np

from guided_kernels._cpu_arguments import Scratch
from guided_kernels._cpu_scan import pick
from guided_kernels._cpu_tile import TILE, num_tiles, part_of, weigh
from guided_kernels._numba import NEG_INF, jit


@jit
def draw_filtered(
    scratch: Scratch, size: int, best: Any, scale: Any, top_k: int, top_p: Any, min_p: Any, uniform: Any
) -> int:
    """The position drawn, after a `scan` that found `best` finite."""
    lowest = _weigh_all(scratch, size, best, scale, min(min_p, np.float32(1)) if min_p > 0 else np.float32(0))
    if 0 < top_k < size:
        _drop(scratch, size, lowest, best, np.int64(top_k), 0.0)
    if top_p < 1:
        whole = scratch.tile_sum[: num_tiles(size)].sum()
        _drop(scratch, size, lowest, best, np.int64(1), whole * max(top_p, np.float32(0)))
    tile, rest = pick(scratch.tile_sum[: num_tiles(size)], uniform * scratch.tile_sum[: num_tiles(size)].sum())
    return tile * TILE + pick(part_of(scratch.weight, tile, size), rest)[0]


@jit
def _weigh_all(scratch: Scratch, size: int, best: Any, scale: Any, least: Any) -> Any:
    """Weights and their sums, without those under `least`; the lowest logit left."""
    lowest = best
    for tile in range(num_tiles(size)):
        if scratch.tile_max[tile] == NEG_INF:
            continue
        x, weight = part_of(scratch.x, tile, size), part_of(scratch.weight, tile, size)
        scratch.tile_sum[tile] = weigh(x, best, scale, weight)
        if least > 0:
            scratch.tile_sum[tile] = _drop_light(x, weight, least)
        lowest = min(lowest, _lowest(x, best))
    return lowest


@jit
def _drop_light(x: Any, weight: Any, least: Any) -> Any:
    left = np.float32(0)
    for i in range(len(x)):
        stays = weight[i] >= least
        x[i] = x[i] if stays else NEG_INF
        weight[i] = weight[i] if stays else np.float32(0)
        left += weight[i]
    return left


@jit
def _lowest(x: Any, best: Any) -> Any:
    lowest = best
    for i in range(len(x)):
        lowest = min(lowest, x[i] if x[i] > NEG_INF else best)
    return lowest


@jit
def _measure(scratch: Scratch, size: int, floor: Any) -> tuple[Any, Any]:
    """How many tokens have x >= floor, and their weight."""
    count, mass = np.int64(0), np.float64(0)
    for tile in range(num_tiles(size)):
        if scratch.tile_max[tile] < floor:
            continue
        x, weight = part_of(scratch.x, tile, size), part_of(scratch.weight, tile, size)
        n, s = np.int32(0), np.float32(0)
        for i in range(len(x)):
            n += np.int32(x[i] >= floor)
            s += weight[i] if x[i] >= floor else np.float32(0)
        count += n
        mass += s
    return count, mass


@jit
def _drop(scratch: Scratch, size: int, lowest: Any, best: Any, num: Any, mass: Any) -> None:
    """Keep the shortest run of the sorted row with at least `num` tokens and `mass`; ties go by position.

    Bisects for the value at which the run ends: enough tokens lie at or above `low`, too few at or above `high`.
    """
    low, high, middle = lowest, np.float32(np.inf), best
    num_low, num_high, mass_high = _measure(scratch, size, low)[0], 0, 0.0
    while low < middle < high and num_low - num_high > 1 and (mass > 0 or num_low > num):
        n, m = _measure(scratch, size, middle)
        if n >= num and m >= mass:
            low, num_low = middle, n
        else:
            high, num_high, mass_high = middle, n, m
        middle = np.float32(0.5) * low + np.float32(0.5) * min(high, best)
    _cut(scratch, size, low, high, num - num_high, mass - mass_high)


@jit
def _cut(scratch: Scratch, size: int, low: Any, high: Any, num: int, mass: Any) -> None:
    """Drop what lies under `low`; from there to `high`, keep by position until `num` tokens and `mass` are had."""
    for tile in range(num_tiles(size)):
        if scratch.tile_max[tile] < low:
            scratch.tile_max[tile], scratch.tile_sum[tile] = NEG_INF, 0.0
            continue
        x, weight = part_of(scratch.x, tile, size), part_of(scratch.weight, tile, size)
        for i in range(len(x)):
            if x[i] < low:
                x[i], weight[i] = NEG_INF, np.float32(0)
            elif x[i] < high:
                if num <= 0 and mass <= 0:
                    x[i], weight[i] = NEG_INF, np.float32(0)
                num -= 1
                mass -= weight[i]
        scratch.tile_sum[tile] = weight.sum()
