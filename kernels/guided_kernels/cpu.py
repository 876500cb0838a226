"""`sample` for CPU tensors: compiled loops over 32-token words that read the logits of allowed words only."""

from __future__ import annotations

import threading
from array import array
from functools import cache, lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from guided_kernels._cpu_arguments import BFLOAT16, CONSTRAINED, FLOAT16, FLOAT32, RAW, SILENT, scratch_bytes
from guided_kernels._cpu_step import compiled
from guided_kernels._numba import source_digest
from guided_kernels.edits import Edits
from guided_kernels.params import SampleParams
from guided_kernels.rows import BITS, MAX_IDS, Rows
from guided_kernels.sampled import LogprobsOf, Sampled

_REPORT = {"raw": RAW, "constrained": CONSTRAINED, "none": SILENT}
_ELEMENT = {torch.float32: FLOAT32, torch.float16: FLOAT16, torch.bfloat16: BFLOAT16}

_ADDRESS = torch.Tensor.data_ptr

_run = cache(lambda: compiled(source_digest()))


def sample(
    logits: torch.Tensor,
    rows: Rows,
    params: SampleParams,
    top_logprobs: int = 0,
    edits: Edits | None = None,
    logprobs: LogprobsOf = "raw",
) -> Sampled:
    """As `guided_kernels.sample.sample`; one thread, GIL released.

    The first call compiles (seconds); later processes load the machine code from numba's cache.
    Also raises ValueError for a row table or an edit that points outside.
    """
    num_rows, vocab = logits.shape
    # Compiled loops over a strided row aren't vectorised.
    logits = logits if logits.stride(1) == 1 else logits.contiguous()
    columns = [logits, *(c.contiguous() for c in vars(rows).values()), *(c.contiguous() for c in vars(params).values())]
    edited, result = _by_row(edits, num_rows, vocab), _blank(num_rows, top_logprobs)
    call = array("q", (
        _ELEMENT[logits.dtype], _REPORT[logprobs], num_rows, vocab, logits.stride(0), *rows.bits.shape,
        rows.num_ids.shape[0], top_logprobs, len(edited[1]),
        *map(_ADDRESS, columns), *map(_ADDRESS, vars(result).values()), _scratch(vocab), *_addresses(edited),
    ))  # fmt: skip
    outside, _ = _run()(call.buffer_info()[0])
    if outside >= 0:
        raise ValueError(_complaint(rows, outside))
    return result


_own = threading.local()


def _scratch(vocab: int) -> int:
    """The address of this thread's scratch, kept between steps: fresh memory would cost a page fault every 4 KiB."""
    held: NDArray[np.float64] | None = getattr(_own, "scratch", None)
    size = -(-scratch_bytes(vocab) // 8)
    if held is None or len(held) < size:
        held = _own.scratch = np.empty(size)
        _own.address = held.ctypes.data
    address: int = _own.address
    return address


# A step of one short row takes 20 us in all, of which every tensor made takes one.
def _blank(num_rows: int, top: int) -> Sampled:
    """Uninitialised: the compiled step fills every row."""
    ids, logprobs, status = (torch.from_numpy(np.empty(num_rows, kind)) for kind in (np.int64, np.float32, np.int8))
    return Sampled(ids, logprobs, status, *(_alternatives(num_rows, top) if top else _no_alternatives(num_rows)))


def _alternatives(num_rows: int, top: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.empty((num_rows, top), dtype=torch.int64), torch.empty((num_rows, top))


@lru_cache(maxsize=256)
def _no_alternatives(num_rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Nothing can be written to tensors without elements, so that steps may share them."""
    return _alternatives(num_rows, 0)


_NO_EDITS = (np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))


def _addresses(edited: tuple[NDArray[Any], ...]) -> tuple[int, ...]:
    return tuple(column.ctypes.data for column in edited) if len(edited[1]) else (0, 0, 0)


def _by_row(edits: Edits | None, num_rows: int, vocab: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Start of each row's edits, their tokens ascending and distinct, their values summed."""
    if edits is None or not len(edits.row):
        return _NO_EDITS
    row, token = edits.row.numpy(), edits.token.numpy()
    outside = (row < 0) | (row >= num_rows) | (token < 0) | (token >= vocab)
    if outside.any():
        at = int(outside.argmax())
        raise ValueError(f"edit {at} must lie in logits [{num_rows}, {vocab}], got [{row[at]}, {token[at]}]")
    place, group = np.unique(row * vocab + token, return_inverse=True)
    value = np.bincount(group, edits.value.numpy(), len(place)).astype(np.float32)
    return np.searchsorted(place // vocab, np.arange(num_rows + 1)), place % vocab, value


def _complaint(rows: Rows, row: int) -> str:
    index = int(rows.index[row])
    name, size = ("bits", len(rows.bits)) if rows.kind[row] == BITS else ("ids", len(rows.ids))
    if 0 <= index < size:
        return f"rows.num_ids[{index}] must lie from 0 to {MAX_IDS}, got {int(rows.num_ids[index])}"
    return f"rows.index[{row}] must be a row of the {size} {name}, got {index}"
