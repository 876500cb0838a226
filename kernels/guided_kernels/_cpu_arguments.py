"""The arguments of a compiled step: as numbers to cross from Python cheaply, then as arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.np.unsafe.ndarray import to_fixed_tuple

from guided_kernels._cpu_tile import num_tiles
from guided_kernels._numba import jit, matrix, vector
from guided_kernels.rows import BITS, FORCED, IDS, MAX_IDS

RAW, CONSTRAINED, SILENT = 0, 1, 2
FLOAT32, FLOAT16, BFLOAT16 = 0, 1, 2


class Call(NamedTuple):
    """A step as sizes and addresses of contiguous memory; see `Step` and `Out`. An address is unused where a size is 0.

    element: the logits' dtype, one of FLOAT32, FLOAT16, BFLOAT16; a row of them starts every `stride`.
    """

    logits: int
    out_ids: int
    out_logprobs: int
    out_status: int
    out_top_ids: int
    out_top_logprobs: int
    num_edits: int
    edit_start: int
    edit_token: int
    edit_value: int
    element: int
    report: int
    num_rows: int
    vocab: int
    stride: int
    num_bits: int
    num_words: int
    num_lists: int
    num_top: int
    scratch: int
    kind: int
    row_index: int
    bits: int
    ids: int
    num_ids: int
    temperature: int
    top_k: int
    top_p: int
    min_p: int
    seed: int
    step: int


_NUM_FIELDS = len(Call._fields)


class Step(NamedTuple):
    """The arguments of a step as arrays: logits flattened (see `Source`); everything: the words of a free row, none
    if no row is free."""

    x32: Any
    x16: Any
    half: bool
    stride: int
    vocab: int
    everything: Any
    kind: Any
    index: Any
    bits: Any
    ids: Any
    num_ids: Any
    temperature: Any
    top_k: Any
    top_p: Any
    min_p: Any
    seed: Any
    step: Any
    edit_start: Any
    edit_token: Any
    edit_value: Any


class Out(NamedTuple):
    """The arrays of a `Sampled`."""

    ids: Any
    logprobs: Any
    status: Any
    top_ids: Any
    top_logprobs: Any


class Scratch(NamedTuple):
    """What a row's passes leave to each other; the next row overwrites it.

    x, weight: float32[positions]. tile_max: float32, tile_sum: float64, one per tile of x.
    Where tile_max is -inf, x and weight of the tile hold nothing.
    """

    x: Any
    weight: Any
    tile_max: Any
    tile_sum: Any


@jit
def call_at(address: int) -> Call:
    """The fields of a call as int64 in a row: one argument crosses from Python in a tenth of the time that 30 take."""
    return Call(*to_fixed_tuple(vector(address, _NUM_FIELDS, np.int64), _NUM_FIELDS))


@jit
def _has_free_source(call: Call) -> bool:
    """Some row may draw from, or is reported over, all of its tokens."""
    free = call.report == RAW
    for kind in vector(call.kind, call.num_rows, np.int32):
        free |= kind != BITS and kind != IDS and kind != FORCED
    return free


@jit
def step_of(call: Call) -> Step:
    wide = call.element == FLOAT32
    length = (call.num_rows - 1) * call.stride + call.vocab if call.num_rows else 0
    rows, edits = call.num_rows, call.num_edits
    return Step(
        vector(call.logits, length if wide else 0, np.float32),
        vector(call.logits, 0 if wide else length, np.uint16),
        call.element == FLOAT16,
        call.stride,
        call.vocab,
        np.full((call.vocab + 31) // 32 if _has_free_source(call) else 0, -1, np.int32),
        vector(call.kind, rows, np.int32),
        vector(call.row_index, rows, np.int32),
        matrix(call.bits, call.num_bits, call.num_words, np.int32),
        matrix(call.ids, call.num_lists, MAX_IDS, np.int32),
        vector(call.num_ids, call.num_lists, np.int32),
        vector(call.temperature, rows, np.float32),
        vector(call.top_k, rows, np.int32),
        vector(call.top_p, rows, np.float32),
        vector(call.min_p, rows, np.float32),
        vector(call.seed, rows, np.int64),
        vector(call.step, rows, np.int64),
        vector(call.edit_start, rows + 1 if edits else 0, np.int64),
        vector(call.edit_token, edits, np.int64),
        vector(call.edit_value, edits, np.float32),
    )


@jit
def out_of(call: Call) -> Out:
    rows, top = call.num_rows, call.num_top
    return Out(
        vector(call.out_ids, rows, np.int64),
        vector(call.out_logprobs, rows, np.float32),
        vector(call.out_status, rows, np.int8),
        matrix(call.out_top_ids, rows, top, np.int64),
        matrix(call.out_top_logprobs, rows, top, np.float32),
    )


def scratch_bytes(vocab: int) -> int:
    """Bytes of scratch that a step needs."""
    positions = max(vocab, MAX_IDS)
    return 8 * positions + 12 * num_tiles(positions)


@jit
def scratch_of(call: Call) -> Scratch:
    positions = max(call.vocab, MAX_IDS)
    tiles = num_tiles(positions)
    sums = call.scratch + 8 * positions
    return Scratch(
        vector(call.scratch, positions, np.float32),
        vector(call.scratch + 4 * positions, positions, np.float32),
        vector(sums + 8 * tiles, tiles, np.float32),
        vector(sums, tiles, np.float64),
    )
