"""Free and BITS rows: one read of the logits into maxima and sums by tile, then the draw from one tile.

A row's sums don't depend on its neighbours, so neither does its token.
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
    LAW_CONSTRAINED,
    LAW_RAW,
    LOG2E,
    NEG_INF,
    S_NAN,
    S_NOTHING,
    S_OK,
    draw_scale,
    load_tile,
    log_normaliser,
    pick,
    places,
    uniform,
)


@triton.jit
def tile_stats(logits_ptr, edited_ptr, kind_ptr, index_ptr, bits_ptr, temperature_ptr, max_ptr, sum_ptr, first_ptr,
               law_max_ptr, law_sum_ptr, vocab, num_words, logits_stride, edited_stride, bits_stride, num_tiles,
               LAW: tl.constexpr, HAS_TAIL: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """Per tile of a row: largest logit, sum of exp((x - largest) / temperature), first id of the largest.

    LAW: also largest and sum at temperature 1, of the raw row (of any kind) or of the masked one. NaN and +inf make
    the sum NaN.
    """
    row = tl.program_id(0)
    tile = tl.program_id(1)
    kind = tl.load(kind_ptr + row)
    index = tl.load(index_ptr + row)
    at = row.to(tl.int64) * num_tiles + tile
    if (kind == K_FREE) | (kind == K_BITS):
        scale = draw_scale(tl.load(temperature_ptr + row))
        x = load_tile(edited_ptr, bits_ptr, row, kind, index, tile, vocab, num_words, edited_stride, bits_stride,
                      True, HAS_TAIL, BLOCK)  # fmt: skip
        # Flat, so that the reduction is one chain in registers and five shuffles.
        x = tl.reshape(x, (BLOCK,))
        high = tl.max(x, 0)
        base = tl.where(high == NEG_INF, 0.0, high)
        tl.store(first_ptr + at, tl.min(tl.where(x == high, places(tile, BLOCK), BIG), 0))
        tl.store(max_ptr + at, high)
        tl.store(sum_ptr + at, tl.sum(tl.exp2((x - base) * scale), 0))
        if LAW == LAW_CONSTRAINED:
            tl.store(law_max_ptr + at, high)
            tl.store(law_sum_ptr + at, tl.sum(tl.exp2((x - base) * LOG2E), 0))
    if LAW == LAW_RAW:
        x = load_tile(logits_ptr, bits_ptr, row, kind, index, tile, vocab, num_words, logits_stride, bits_stride,
                      False, HAS_TAIL, BLOCK)  # fmt: skip
        x = tl.reshape(x, (BLOCK,))
        high = tl.max(x, 0)
        base = tl.where(high == NEG_INF, 0.0, high)
        tl.store(law_max_ptr + at, high)
        tl.store(law_sum_ptr + at, tl.sum(tl.exp2((x - base) * LOG2E), 0))


@triton.jit
def draw_rows(logits_ptr, edited_ptr, kind_ptr, index_ptr, bits_ptr, temperature_ptr, min_p_ptr, seed_ptr, step_ptr,
              max_ptr, sum_ptr, first_ptr, law_max_ptr, law_sum_ptr, cut_value_ptr, cut_id_ptr,
              id_ptr, logprob_ptr, status_ptr, vocab, num_words, logits_stride, edited_stride, bits_stride, num_tiles,
              LAW: tl.constexpr, FILTERS: tl.constexpr, HAS_TAIL: tl.constexpr, BLOCK: tl.constexpr,
              TILES: tl.constexpr):  # fmt: skip
    """Token, status and log-prob of a row from its tiles. FILTERS: `cut_rows` has run and left its cut."""
    row = tl.program_id(0)
    kind = tl.load(kind_ptr + row)
    if (kind == K_FREE) | (kind == K_BITS):
        t = tl.arange(0, TILES)
        at = row.to(tl.int64) * num_tiles + t
        temperature = tl.load(temperature_ptr + row)
        scale = draw_scale(temperature)
        high = tl.load(max_ptr + at, mask=t < num_tiles, other=NEG_INF)
        part = tl.load(sum_ptr + at, mask=t < num_tiles, other=0.0)
        best = tl.max(high, 0)
        base = tl.where(best == NEG_INF, 0.0, best)
        part = part * tl.exp2((high - base) * scale)
        whole = tl.sum(part, 0)
        token = tl.full((), -1, tl.int32)
        status = tl.full((), S_OK, tl.int32)
        if whole != whole:
            status = tl.full((), S_NAN, tl.int32)
        else:
            if best == NEG_INF:
                status = tl.full((), S_NOTHING, tl.int32)
            else:
                if temperature >= COLDEST:
                    tile, rest = pick(part, t, uniform(seed_ptr, step_ptr, row) * whole, TILES)
                    x = load_tile(edited_ptr, bits_ptr, row, kind, tl.load(index_ptr + row), tile, vocab, num_words,
                                  edited_stride, bits_stride, True, HAS_TAIL, BLOCK)  # fmt: skip
                    weight = tl.exp2((x - base) * scale)
                    # Words first, then the 32 tokens of one word: two short prefix sums in place of a long one.
                    w = tl.arange(0, BLOCK // 32)
                    j = tl.arange(0, 32)
                    if FILTERS:
                        ids = (tile * BLOCK + w * 32)[:, None] + j[None, :]
                        cut = tl.load(cut_value_ptr + row)
                        kept = (x > cut) | ((x == cut) & (ids <= tl.load(cut_id_ptr + row)))
                        least = tl.load(min_p_ptr + row)
                        least = tl.where(least > 0.0, tl.minimum(least, 1.0), 0.0)
                        weight = tl.where(kept & (weight >= least), weight, 0.0)
                    word, rest = pick(tl.sum(weight, 1), w, rest, BLOCK // 32)
                    lane, _ = pick(tl.sum(tl.where((w == word)[:, None], weight, 0.0), 0), j, rest, 32)
                    token = (tile * (BLOCK // 32) + word) * 32 + lane
                else:
                    token = tl.min(tl.load(first_ptr + at, mask=high == best, other=BIG), 0)
        tl.store(id_ptr + row, token.to(tl.int64))
        tl.store(status_ptr + row, status.to(tl.int8))
        logprob = tl.where(status == S_NOTHING, NEG_INF, float("nan"))
        if LAW != 0:  # noqa: SIM102 - the one is decided when compiling, the other when running
            if status == S_OK:
                if LAW == LAW_RAW:
                    chosen = tl.load(logits_ptr + row.to(tl.int64) * logits_stride + token).to(tl.float32)
                else:
                    chosen = tl.load(edited_ptr + row.to(tl.int64) * edited_stride + token).to(tl.float32)
                logprob = chosen - log_normaliser(law_max_ptr, law_sum_ptr, row, num_tiles, TILES)
        tl.store(logprob_ptr + row, logprob)
