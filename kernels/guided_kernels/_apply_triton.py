"""The mask by itself, in place, for those who sample elsewhere. No logit is read."""

# A jit body is typed by Triton, at compile time.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators
from __future__ import annotations

import triton
import triton.language as tl

from guided_kernels._triton_math import NEG_INF


@triton.jit
def apply_bits(logits_ptr, bits_ptr, rows_ptr, vocab, num_words, logits_stride, bits_stride,
               HAS_TAIL: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """logits[rows[i], t] = -inf where bit t of bits[i] is 0; words that allow all their tokens cost nothing."""
    i = tl.program_id(0)
    row = tl.load(rows_ptr + i).to(tl.int64)
    first = tl.program_id(1) * (BLOCK // 32)
    w = tl.arange(0, BLOCK // 32)
    j = tl.arange(0, 32)
    words = tl.load(bits_ptr + i.to(tl.int64) * bits_stride + first + w, mask=w < num_words - first, other=0)
    place = w[:, None] * 32 + j[None, :]
    room = vocab - first * 32
    target = logits_ptr + row * logits_stride + first * 32 + place
    barred = tl.full((BLOCK // 32, 32), NEG_INF, logits_ptr.dtype.element_ty)
    off = (words[:, None] & (1 << j)[None, :]) == 0
    if HAS_TAIL:
        whole = (words == 0) & (w * 32 + 32 <= room)
        mixed = off & (place < room) & (whole == 0)[:, None]
    else:
        whole = (words == 0) & (w * 32 < room)
        mixed = off & ((words != 0) & (w * 32 < room))[:, None]
    # A predicate that is constant along a word keeps these stores 128 bits wide.
    tl.store(target, barred, mask=whole[:, None])
    tl.store(target, barred, mask=mixed)
