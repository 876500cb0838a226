"""top-k, min-p and top-p on free and BITS rows: the value, and among equals the id, at which the kept tokens end.

No sort: bisection for the value, reading only tiles whose maximum reaches it.
"""

# A jit body is typed by Triton, at compile time.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators
from __future__ import annotations

import triton
import triton.language as tl

from guided_kernels._triton_math import (
    BIG,
    COLDEST,
    K_BITS,
    K_FREE,
    LOG2E,
    LOWEST,
    NEG_INF,
    draw_scale,
    load_tile,
    places,
)


@triton.jit
def kept_tile(edited_ptr, bits_ptr, row, kind, index, tile, vocab, num_words, edited_stride, bits_stride, best, scale,
              least, cut, cut_id, HAS_TAIL: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """Flat tile: logits, weights, and which tokens the cut so far keeps."""
    x = load_tile(edited_ptr, bits_ptr, row, kind, index, tile, vocab, num_words, edited_stride, bits_stride, True,
                  HAS_TAIL, BLOCK)  # fmt: skip
    x = tl.reshape(x, (BLOCK,))
    weight = tl.exp2((x - best) * scale)
    kept = (x > cut) | ((x == cut) & (places(tile, BLOCK) <= cut_id))
    return x, weight, kept & (weight >= least)


@triton.jit
def cut_rows(edited_ptr, kind_ptr, index_ptr, bits_ptr, temperature_ptr, top_k_ptr, top_p_ptr, min_p_ptr,
             max_ptr, sum_ptr, cut_value_ptr, cut_id_ptr, vocab, num_words, edited_stride, bits_stride, num_tiles,
             HAS_TAIL: tl.constexpr, BLOCK: tl.constexpr, TILES: tl.constexpr):  # fmt: skip
    """After `tile_stats`: store the row's cut, and make the tile sums those of the kept tokens.

    A token stays if x > cut_value, or x == cut_value and id <= cut_id, and if its weight reaches min_p.
    """
    row = tl.program_id(0)
    kind = tl.load(kind_ptr + row)
    temperature = tl.load(temperature_ptr + row)
    top_k = tl.load(top_k_ptr + row)
    top_p = tl.load(top_p_ptr + row)
    least = tl.load(min_p_ptr + row)
    least = tl.where(least > 0.0, tl.minimum(least, 1.0), 0.0)
    index = tl.load(index_ptr + row)
    scale = draw_scale(temperature)
    t = tl.arange(0, TILES)
    start = row.to(tl.int64) * num_tiles
    dense = (kind == K_FREE) | (kind == K_BITS)
    # Rows of other kinds have no tiles: what stands there is old memory.
    filled = tl.where(dense, num_tiles, 0)
    high = tl.load(max_ptr + start + t, mask=t < filled, other=NEG_INF)
    part = tl.load(sum_ptr + start + t, mask=t < filled, other=0.0)
    best = tl.max(high, 0)
    whole = tl.sum(part * tl.exp2((high - tl.where(best == NEG_INF, 0.0, best)) * scale), 0)
    cut = tl.full((), NEG_INF, tl.float32)
    cut_id = tl.full((), BIG, tl.int32)
    narrows = (top_k > 0) | (top_p < 1.0) | (least > 0.0)
    if narrows & (temperature >= COLDEST) & (best > NEG_INF) & (whole == whole):
        # Twice the same search: for top-k, which wants tokens, then for top-p, which wants a share of their weight.
        for search in range(2):
            active = tl.where(search == 0, top_k > 0, top_p < 1.0)
            if active:
                wanted = tl.where(search == 0, top_k, 1)
                share = tl.full((), 0.0, tl.float32)
                if search == 1:
                    for tile in range(num_tiles):
                        if tl.load(max_ptr + start + tile) >= cut:
                            x, weight, kept = kept_tile(
                                edited_ptr, bits_ptr, row, kind, index, tile, vocab, num_words, edited_stride,
                                bits_stride, best, scale, least, cut, cut_id, HAS_TAIL, BLOCK)  # fmt: skip
                            share += tl.sum(tl.where(kept, weight, 0.0), 0)
                    share = share * tl.maximum(top_p, 0.0)
                # Enough tokens lie at or above `low`, too few at or above `ceiling`. The first `low` is sought by
                # steps down from the best that double; if none is enough, all stay. What lies below the first guess
                # weighs nothing.
                low = tl.maximum(best - 150.0 / scale, LOWEST)
                num_low = tl.full((), BIG, tl.int32)
                ceiling = tl.full((), float("inf"), tl.float32)
                num_high = tl.full((), 0, tl.int32)
                mass_high = tl.full((), 0.0, tl.float32)
                middle = best
                reach = LOG2E / scale
                while (
                    (low < middle)
                    & (middle < ceiling)
                    & (num_low - num_high > 1)
                    & ((share > 0.0) | (num_low > wanted))
                ):
                    count = tl.full((), 0, tl.int32)
                    mass = tl.full((), 0.0, tl.float32)
                    for tile in range(num_tiles):
                        if tl.load(max_ptr + start + tile) >= middle:
                            x, weight, kept = kept_tile(
                                edited_ptr, bits_ptr, row, kind, index, tile, vocab, num_words, edited_stride,
                                bits_stride, best, scale, least, cut, cut_id, HAS_TAIL, BLOCK)  # fmt: skip
                            kept = kept & (x >= middle)
                            count += tl.sum(kept.to(tl.int32), 0)
                            mass += tl.sum(tl.where(kept, weight, 0.0), 0)
                    if (count >= wanted) & (mass >= share):
                        low = middle
                        num_low = count
                    else:
                        ceiling = middle
                        num_high = count
                        mass_high = mass
                    if num_low == BIG:
                        middle = best - reach
                        reach = reach * 2.0
                    else:
                        middle = 0.5 * low + 0.5 * tl.minimum(ceiling, best)
                if num_low < BIG:
                    if (num_low - num_high > 1) & ((share > 0.0) | (num_low > wanted)):
                        # No float lies between: all from `low` up to `ceiling` are equal, and stay by id.
                        left = wanted - num_high
                        need = share - mass_high
                        cut_id_here = tl.full((), -1, tl.int32)
                        for tile in range(num_tiles):
                            if (tl.load(max_ptr + start + tile) >= low) & ((left > 0) | (need > 0.0)):
                                x, weight, kept = kept_tile(
                                    edited_ptr, bits_ptr, row, kind, index, tile, vocab, num_words, edited_stride,
                                    bits_stride, best, scale, least, cut, cut_id, HAS_TAIL, BLOCK)  # fmt: skip
                                equal = kept & (x == low)
                                heavy = tl.where(equal, weight, 0.0)
                                rank = tl.cumsum(equal.to(tl.int32), 0) - 1
                                stays = equal & ((rank < left) | (tl.cumsum(heavy, 0) - heavy < need))
                                cut_id_here = tl.maximum(
                                    cut_id_here, tl.max(tl.where(stays, places(tile, BLOCK), -1), 0))  # fmt: skip
                                left -= tl.sum(equal.to(tl.int32), 0)
                                need -= tl.sum(heavy, 0)
                        cut_id = cut_id_here
                    else:
                        cut_id = tl.where(low > cut, BIG, cut_id)
                    cut = tl.maximum(low, cut)
        for tile in range(num_tiles):
            total = tl.full((), 0.0, tl.float32)
            if tl.load(max_ptr + start + tile) >= cut:
                x, weight, kept = kept_tile(
                    edited_ptr, bits_ptr, row, kind, index, tile, vocab, num_words, edited_stride, bits_stride, best,
                    scale, least, cut, cut_id, HAS_TAIL, BLOCK)  # fmt: skip
                total = tl.sum(tl.where(kept, weight, 0.0), 0)
            tl.store(sum_ptr + start + tile, total)
            tl.store(max_ptr + start + tile, tl.where(total > 0.0, best, NEG_INF))
    tl.store(cut_value_ptr + row, cut)
    tl.store(cut_id_ptr + row, cut_id)
