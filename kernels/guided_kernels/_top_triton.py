"""The likeliest tokens of a row, from its tile maxima: one tile is read again per token found."""

# A jit body is typed by Triton, at compile time.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators
from __future__ import annotations

import triton
import triton.language as tl

from guided_kernels._triton_math import (
    BIG,
    K_BITS,
    K_FREE,
    LAW_CONSTRAINED,
    NEG_INF,
    S_OK,
    load_tile,
    log_normaliser,
    places,
)


@triton.jit
def top_rows(law_ptr, kind_ptr, index_ptr, bits_ptr, law_max_ptr, law_sum_ptr, status_ptr, top_id_ptr, top_logprob_ptr,
             vocab, num_words, law_stride, bits_stride, num_tiles, num_top,
             LAW: tl.constexpr, HAS_TAIL: tl.constexpr, BLOCK: tl.constexpr, TILES: tl.constexpr):  # fmt: skip
    """After the draw: ids and log-probs in falling order, the lower id first among equals.

    law_ptr: the logits of the law: raw for every kind of row, edited for free and BITS rows of the constrained one
    (`draw_ids` does its own). Slots of rows that aren't OK or have no distribution are left as they were.
    """
    row = tl.program_id(0)
    kind = tl.load(kind_ptr + row)
    ours = (kind == K_FREE) | (kind == K_BITS) if LAW == LAW_CONSTRAINED else kind >= 0
    status = tl.load(status_ptr + row, mask=ours, other=-1)
    if status == S_OK:
        offset = log_normaliser(law_max_ptr, law_sum_ptr, row, num_tiles, TILES)
        index = tl.load(index_ptr + row)
        t = tl.arange(0, TILES)
        high = tl.load(law_max_ptr + row.to(tl.int64) * num_tiles + t, mask=t < num_tiles, other=NEG_INF)
        last = tl.full((TILES,), -1, tl.int32)
        out = row.to(tl.int64) * num_top
        for rank in range(num_top):
            best = tl.max(high, 0)
            if (best > NEG_INF) & (offset == offset):
                tile = tl.min(tl.where(high == best, t, TILES), 0)
                # Of this tile, ids up to `after` with the value `best` have been reported.
                after = tl.max(tl.where(t == tile, last, -1), 0)
                x = load_tile(law_ptr, bits_ptr, row, kind, index, tile, vocab, num_words, law_stride, bits_stride,
                              LAW == LAW_CONSTRAINED, HAS_TAIL, BLOCK)  # fmt: skip
                x = tl.reshape(x, (BLOCK,))
                ids = places(tile, BLOCK)
                token = tl.min(tl.where((x == best) & (ids > after), ids, BIG), 0)
                tl.store(top_id_ptr + out + rank, token.to(tl.int64))
                tl.store(top_logprob_ptr + out + rank, best - offset)
                again = tl.max(tl.where((x == best) & (ids > token), x, NEG_INF), 0)
                lower = tl.max(tl.where(x < best, x, NEG_INF), 0)
                high = tl.where(t == tile, tl.maximum(again, lower), high)
                last = tl.where(t == tile, tl.where(again > NEG_INF, token, -1), last)
