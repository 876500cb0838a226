"""A step on the CPU, row by row: so a row's token cannot depend on its neighbours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from guided_kernels._cpu_arguments import CONSTRAINED, RAW, Out, Scratch, Step, call_at, out_of, scratch_of, step_of
from guided_kernels._cpu_filter import draw_filtered
from guided_kernels._cpu_ids import list_ids
from guided_kernels._cpu_scan import draw, first_best, likeliest, scan, scan_peaks
from guided_kernels._cpu_tile import Source
from guided_kernels._numba import LOG2E, NEG_INF, cached_jit, jit, uniform
from guided_kernels.params import GREEDY_BELOW, HOTTEST
from guided_kernels.rows import BITS, FORCED, IDS, MAX_IDS
from guided_kernels.sampled import NOT_A_NUMBER, NOTHING_ALLOWED, OK

_COLDEST, _HOTTEST = np.float32(GREEDY_BELOW), np.float32(HOTTEST)


@jit
def _source(step: Step, row: int, listing: Any) -> Source:
    """What the mask leaves of a row. A short BITS row is listed: then only its allowed logits are read."""
    words, ids, size, listed = step.everything, listing, step.vocab, False
    index = step.index[row]
    if step.kind[row] == IDS:
        ids, size, listed = step.ids[index], step.num_ids[index], True
    elif step.kind[row] == BITS:
        words = step.bits[index]
        found = list_ids(words, step.vocab, listing)
        if found >= 0:
            size, listed = found, True
    start, end = (step.edit_start[row], step.edit_start[row + 1]) if len(step.edit_token) else (0, 0)
    return _masked(step, row, words, ids, size, listed, start, end)


@jit
def _masked(step: Step, row: int, words: Any, ids: Any, size: int, listed: bool, start: int, end: int) -> Source:
    first = row * step.stride
    x32, x16 = step.x32[first : first + step.vocab], step.x16[first : first + step.vocab]
    edits = step.edit_token[start:end], step.edit_value[start:end]
    return Source(x32, x16, step.half, step.vocab, words, ids, size, listed, edits[0], edits[1])


@jit
def _draw(step: Step, row: int, source: Source, scratch: Scratch) -> tuple[int, int]:
    """Position and status."""
    hot = step.temperature[row] >= _COLDEST
    scale = LOG2E / min(step.temperature[row], _HOTTEST) if hot else np.float32(0)
    filters = hot and (step.top_k[row] > 0 or step.top_p[row] < 1 or step.min_p[row] > 0)
    if hot:
        best, whole, bad = scan(source, scratch, np.float32(0) if filters else scale)
    else:
        best, bad = scan_peaks(source, scratch)
    if bad:
        return -1, NOT_A_NUMBER
    if best == NEG_INF:
        return -1, NOTHING_ALLOWED
    if not hot:
        return first_best(source, scratch, best), OK
    u = uniform(step.seed[row], step.step[row])
    if filters:
        top_k, top_p, min_p = step.top_k[row], step.top_p[row], step.min_p[row]
        return draw_filtered(scratch, source.size, best, scale, top_k, top_p, min_p, u), OK
    return draw(scratch, source.size, best, scale, u * whole), OK


@jit
def _report(source: Source, scratch: Scratch, position: int, top: Any, out: Out, row: int) -> None:
    """log_softmax over the source at temperature 1: of `position`, and of the likeliest. top: int64[k], scratch."""
    best, whole, bad = scan(source, scratch, LOG2E)
    if bad or best == NEG_INF:
        return
    offset = float(best) + np.log(whole)
    out.logprobs[row] = scratch.x[position] - offset
    if len(top):
        found = likeliest(scratch, source.size, top, out.top_logprobs[row])
        for k in range(found):
            out.top_ids[row, k] = source.ids[top[k]] if source.listed else top[k]
            out.top_logprobs[row, k] -= offset


@jit
def _row(step: Step, row: int, source: Source, scratch: Scratch, top: Any, report: int, out: Out) -> None:
    if step.kind[row] == FORCED:
        position = step.index[row]
        status = OK if 0 <= position < step.vocab else NOTHING_ALLOWED
    else:
        position, status = _draw(step, row, source, scratch)
    out.status[row] = status
    out.ids[row] = -1
    out.top_ids[row], out.top_logprobs[row] = -1, -np.inf
    out.logprobs[row] = -np.inf if status == NOTHING_ALLOWED else np.nan
    if status != OK:
        return
    out.ids[row] = source.ids[position] if source.listed else position
    if report == RAW:
        raw = _masked(step, row, step.everything, source.ids, step.vocab, False, 0, 0)
        _report(raw, scratch, out.ids[row], top, out, row)
    elif report == CONSTRAINED and step.kind[row] == FORCED:
        out.logprobs[row] = 0.0
        if len(top):
            out.top_ids[row, 0], out.top_logprobs[row, 0] = position, 0.0
    elif report == CONSTRAINED:
        _report(source, scratch, position, top, out, row)


@jit
def _first_outside(step: Step) -> int:
    """The first row whose index or list length points outside its table, or -1. Nothing below checks bounds."""
    for row in range(len(step.kind)):
        index = step.index[row]
        if step.kind[row] == BITS and not 0 <= index < len(step.bits):
            return row
        if step.kind[row] == IDS and not (0 <= index < len(step.ids) and 0 <= step.num_ids[index] <= MAX_IDS):
            return row
    return -1


def compiled(digest: int) -> Callable[[int], tuple[int, int]]:
    """The step of the `Call` at an address.

    First of the result: the first row that points outside its table (then nothing is drawn), or -1.
    """

    @cached_jit
    def run(address: int) -> tuple[int, int]:
        call = call_at(address)
        step, out = step_of(call), out_of(call)
        outside = _first_outside(step)
        if outside < 0:
            scratch = scratch_of(call)
            listing = np.empty(MAX_IDS, np.int32)
            top = np.empty(out.top_ids.shape[1], np.int64)
            for row in range(len(step.kind)):
                source = _source(step, row, listing)
                _row(step, row, source, scratch, top, call.report, out)
        # Being closed over puts the digest into numba's cache key, which otherwise sees changes of this file only.
        return outside, digest

    return run
