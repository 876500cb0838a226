"""One row as tiles of float32: masked, edited, whatever it was stored as."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from guided_kernels._numba import KEY_OF_INF, KEY_OF_NEG_INF, NEG_INF, as_float, exp2, jit, key, value_of

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
    whole = len(part) // 32 * 32
    for offset in range(0, len(part), 32):
        w = (base + offset) // 32
        word = source.words[w] if w < len(source.words) else np.int32(0)
        if word == 0:
            part[offset : offset + 32] = NEG_INF
        elif offset < whole:
            for j in range(32):
                # Unsigned, as numba tests a signed index for being negative, and then the loop isn't vectorised.
                value = as_float(x[np.uintp(base + offset + j)])
                part[np.uintp(offset + j)] = value if word & (np.int32(1) << np.int32(j)) else NEG_INF
        else:
            for i in range(whole, len(part)):
                part[i] = as_float(x[base + i]) if word & (np.int32(1) << np.int32(i - whole)) else NEG_INF


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
def extremes(part: Any) -> tuple[Any, bool]:
    """The largest value, and whether any is NaN or +inf (then the first means nothing)."""
    high, low = key(NEG_INF), key(NEG_INF)
    for i in range(len(part)):
        ordered = key(part[i])
        high = max(high, ordered)
        low = min(low, ordered)
    return value_of(high), high >= KEY_OF_INF or low < KEY_OF_NEG_INF


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
