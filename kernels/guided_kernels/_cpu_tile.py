"""One row as tiles of float32: masked, edited, whatever it was stored as."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from guided_kernels._cpu_peak import peak
from guided_kernels._numba import INF_BITS, NEG_INF, NEG_INF_BITS, as_float, exp2, jit

TILE = 1024
_WORDS = TILE // 32


class Source(NamedTuple):
    """What a row may draw from: its `vocab` logits under `words`, or the first `size` of `ids` if `listed`.

    x32, x16: the logits, in the array that isn't empty; x16 holds the bits of float16 if `half`, else of bfloat16.
    size: positions, which tiles cut up: the vocabulary, or the number of listed ids.
    edit_token (ascending), edit_value: added to allowed logits.
    """

    x32: Any
    x16: Any
    half: bool
    vocab: int
    words: Any
    ids: Any
    size: int
    listed: bool
    edit_token: Any
    edit_value: Any


@jit
def num_tiles(size: int) -> int:
    return (size + TILE - 1) // TILE


@jit
def part_of(array: Any, tile: int, size: int) -> Any:
    """The tile's share of an array of `size` positions."""
    return array[tile * TILE : min(tile * TILE + TILE, size)]


@jit
def load(source: Source, base: int, part: Any) -> None:
    """Fill part with the logits from position `base` on, -inf where not allowed."""
    # One array per dtype, chosen here, so that everything but the filling is compiled once.
    if len(source.x32):
        _fill(source.x32, source, base, part)
    elif source.half:
        _fill(source.x16.view(np.int16), source, base, part)
    else:
        _fill(source.x16, source, base, part)
    if len(source.edit_token):
        _edit(source, base, part)


@jit
def _fill(x: Any, source: Source, base: int, part: Any) -> None:
    if source.listed:
        for i in range(len(part)):
            token = source.ids[i]
            part[i] = as_float(x[token]) if 0 <= token < source.vocab else NEG_INF
        return
    first, whole = base // 32, len(part) // 32
    for w in range(whole):
        word = source.words[np.uintp(first + w)] if first + w < len(source.words) else np.int32(0)
        # Unsigned, as numba tests a signed index for being negative, and then these loops aren't vectorised.
        if word == 0:
            for j in range(32):
                part[np.uintp(w * 32 + j)] = NEG_INF
        else:
            for j in range(32):
                value = as_float(x[np.uintp(base + w * 32 + j)])
                part[np.uintp(w * 32 + j)] = value if word & (np.int32(1) << np.int32(j)) else NEG_INF
    rest = source.words[first + whole] if first + whole < len(source.words) else np.int32(0)
    for i in range(whole * 32, len(part)):
        allowed = rest & (np.int32(1) << np.int32(i - whole * 32))
        part[i] = as_float(x[base + i]) if allowed else NEG_INF


@jit
def first_at_least(ascending: Any, value: Any) -> int:
    low, high = 0, len(ascending)
    while low < high:
        middle = (low + high) // 2
        if ascending[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def _edit(source: Source, base: int, part: Any) -> None:
    first = 0 if source.listed else first_at_least(source.edit_token, base)
    for e in range(first, len(source.edit_token)):
        token = source.edit_token[e]
        position = first_at_least(source.ids[: source.size], token) if source.listed else token - base
        if position >= len(part):
            return
        matches = not source.listed or source.ids[position] == token
        if matches and part[position] > NEG_INF:
            part[position] += source.edit_value[e]


@jit
def is_empty(source: Source, tile: int) -> bool:
    """No word of the tile allows anything."""
    some = np.int32(0)
    for w in range(tile * _WORDS, min(tile * _WORDS + _WORDS, len(source.words))):
        some |= source.words[w]
    return some == 0 and not source.listed


@jit
def is_plain(source: Source, tile: int) -> bool:
    """A whole tile of logits that wait for nothing but their mask."""
    last, editable = tile + 1, len(source.edit_token) > 0
    covered = last * TILE <= source.vocab and last * _WORDS <= len(source.words)
    # half precision needs an instruction that not every machine has
    return covered and not (source.listed or editable or source.half)


@jit
def plain_peak(source: Source, tile: int) -> tuple[Any, bool]:
    """`extremes` of a plain tile."""
    words = source.words[tile * _WORDS : tile * _WORDS + _WORDS]
    if len(source.x32):
        return peak(source.x32[tile * TILE : tile * TILE + TILE], words)
    return peak(source.x16[tile * TILE : tile * TILE + TILE], words)


@jit
def extremes(part: Any) -> tuple[Any, Any]:
    """The largest value, and whether any is NaN or +inf (then the first means nothing).

    By the bits, as float maxima aren't vectorised where NaN has a meaning: positive floats are ordered as signed
    integers, negative ones against unsigned ones, and each sort of NaN lies beyond its infinity.
    """
    most = np.int32(-0x80000000)
    unsigned_most, unsigned_least = np.uint32(0), np.uint32(0xFFFFFFFF)
    for i in range(len(part)):
        bits = np.float32(part[i]).view(np.int32)
        most = max(most, bits)
        unsigned_most = max(unsigned_most, np.uint32(bits))
        unsigned_least = min(unsigned_least, np.uint32(bits))
    bad = most >= INF_BITS or unsigned_most > NEG_INF_BITS
    return np.int32(most).view(np.float32) if most >= 0 else np.uint32(unsigned_least).view(np.float32), bad


@jit
def total(part: Any, best: Any, scale: Any) -> Any:
    """Sum of 2**((x - best) * scale)."""
    s = np.float32(0)
    for i in range(len(part)):
        s += exp2((part[i] - best) * scale)
    return s


@jit
def weigh(part: Any, best: Any, scale: Any, weight: Any) -> Any:
    """weight = 2**((x - best) * scale); the sum."""
    s = np.float32(0)
    for i in range(len(part)):
        w = exp2((part[i] - best) * scale)
        weight[i] = w
        s += w
    return s
