"""What the Triton kernels share: constants, the row's random number, draws by inverse CDF, the masked tile."""

# A jit body is typed by Triton, at compile time.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators
from __future__ import annotations

import triton
import triton.language as tl

from guided_kernels.params import GREEDY_BELOW, HOTTEST
from guided_kernels.rows import BITS, FORCED, IDS, UNCONSTRAINED
from guided_kernels.sampled import NOT_A_NUMBER, NOTHING_ALLOWED, OK

NEG_INF = tl.constexpr(float("-inf"))
LOWEST = tl.constexpr(-3.4028234663852886e38)
LOG2E = tl.constexpr(1.4426950408889634)
BIG = tl.constexpr(0x7FFFFFFF)

K_FREE, K_BITS, K_IDS, K_FORCED = (tl.constexpr(kind) for kind in (UNCONSTRAINED, BITS, IDS, FORCED))
S_OK, S_NOTHING, S_NAN = (tl.constexpr(status) for status in (OK, NOTHING_ALLOWED, NOT_A_NUMBER))
COLDEST, WARMEST = tl.constexpr(GREEDY_BELOW), tl.constexpr(HOTTEST)

SILENT, RAW, CONSTRAINED = 0, 1, 2
LAW_RAW, LAW_CONSTRAINED = tl.constexpr(RAW), tl.constexpr(CONSTRAINED)


@triton.jit
def draw_scale(temperature):
    """LOG2E / temperature, clamped as `SampleParams` says; LOG2E where greedy."""
    usable = tl.where(temperature >= COLDEST, temperature, 1.0)
    return LOG2E / tl.minimum(usable, WARMEST)


@triton.jit
def uniform(seed_ptr, step_ptr, row):
    """`philox.uniform` of the row, in float32."""
    step = tl.load(step_ptr + row)
    low = (step & 0xFFFFFFFF).to(tl.uint32)
    high = ((step >> 32) & 0xFFFFFFFF).to(tl.uint32)
    word, _, _, _ = tl.philox(tl.load(seed_ptr + row), low, high, low * 0, low * 0)
    return ((word >> 9).to(tl.float32) + 0.5) * 1.1920928955078125e-07


@triton.jit
def pick(weight, place, target, SIZE: tl.constexpr):
    """The first place at which the running sum exceeds target, else the last with a weight; what of target is left."""
    running = tl.cumsum(weight, 0)
    first = tl.min(tl.where((weight > 0.0) & (running > target), place, SIZE), 0)
    last = tl.max(tl.where(weight > 0.0, place, -1), 0)
    chosen = tl.where(first == SIZE, last, first)
    return chosen, target - tl.sum(tl.where(place < chosen, weight, 0.0), 0)


@triton.jit
def load_tile(logits_ptr, bits_ptr, row, kind, index, tile, vocab, num_words, logits_stride, bits_stride,
              MASKED: tl.constexpr, HAS_TAIL: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """float32[BLOCK // 32, 32] of a free or BITS row, -inf where not allowed; logits of words that are 0 aren't read.

    not MASKED: the raw row, everything inside the vocabulary. HAS_TAIL: vocab isn't a multiple of 32. Loads are
    predicated by word, or they would not be 128 bits wide.
    """
    w = tl.arange(0, BLOCK // 32)
    j = tl.arange(0, 32)
    first = tile * BLOCK
    place = w[:, None] * 32 + j[None, :]
    room = vocab - first
    words = tl.full((BLOCK // 32,), -1, tl.int32)
    if MASKED:
        bound = kind == K_BITS
        left = tl.where(bound, num_words - tile * (BLOCK // 32), 0)
        start = bits_ptr + tl.where(bound, index, 0).to(tl.int64) * bits_stride + tile * (BLOCK // 32)
        words = tl.load(start + w, mask=w < left, other=0)
        words = tl.where(bound, words, -1)
    if HAS_TAIL:
        allowed = ((words[:, None] & (1 << j)[None, :]) != 0) & (place < room)
        read = (words != 0)[:, None] & (place < room)
    else:
        words = tl.where(w * 32 < room, words, 0)
        allowed = (words[:, None] & (1 << j)[None, :]) != 0
        read = (words != 0)[:, None]
    x = tl.load(logits_ptr + row.to(tl.int64) * logits_stride + first + place, mask=read).to(tl.float32)
    return tl.where(allowed, x, NEG_INF)


@triton.jit
def places(tile, BLOCK: tl.constexpr):
    """Token ids of a flattened tile."""
    return tile * BLOCK + tl.arange(0, BLOCK)


@triton.jit
def log_normaliser(max_ptr, sum_ptr, row, num_tiles, TILES: tl.constexpr):
    """log(sum(exp(x))) from a row's tile maxima and sums at temperature 1; NaN if a logit is NaN or +inf."""
    t = tl.arange(0, TILES)
    at = row.to(tl.int64) * num_tiles + t
    high = tl.load(max_ptr + at, mask=t < num_tiles, other=NEG_INF)
    part = tl.load(sum_ptr + at, mask=t < num_tiles, other=0.0)
    best = tl.max(high, 0)
    best = tl.where(best == NEG_INF, 0.0, best)
    total = tl.sum(part * tl.exp2((high - best) * LOG2E), 0)
    return tl.where(total == 0.0, NEG_INF, best + tl.log(tl.where(total == 0.0, 1.0, total)))
