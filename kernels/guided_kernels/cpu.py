"""`sample` for CPU tensors: compiled loops over 32-token words that read the logits of allowed words only."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from guided_kernels._cpu_arguments import BFLOAT16, CONSTRAINED, FLOAT16, FLOAT32, RAW, SILENT, Call
from guided_kernels._cpu_step import compiled
from guided_kernels._numba import source_digest
from guided_kernels.edits import Edits
from guided_kernels.params import SampleParams
from guided_kernels.rows import BITS, MAX_IDS, Rows
from guided_kernels.sampled import LogprobsOf, Sampled

_REPORT = {"raw": RAW, "constrained": CONSTRAINED, "none": SILENT}
_ELEMENT = {torch.float32: FLOAT32, torch.float16: FLOAT16, torch.bfloat16: BFLOAT16}

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
    table = [column.contiguous() for column in vars(rows).values()]
    law = [column.contiguous() for column in vars(params).values()]
    edited = _by_row(edits, num_rows, vocab)
    result = _blank(num_rows, top_logprobs)
    call: list[int] = [logits.data_ptr(), _ELEMENT[logits.dtype], logits.stride(0), num_rows, vocab]
    call += [table[0].data_ptr(), table[1].data_ptr(), table[2].data_ptr(), *table[2].shape]
    call += [table[3].data_ptr(), len(table[3]), table[4].data_ptr()]
    call += [column.data_ptr() for column in law]
    call += [column.ctypes.data if len(edited[1]) else 0 for column in edited]
    call += [len(edited[1]), _REPORT[logprobs]]
    call += [column.data_ptr() for column in vars(result).values()]
    outside, _ = _run()(Call(*call, top_logprobs))  # type: ignore[call-arg]
    if outside >= 0:
        raise ValueError(_complaint(rows, outside))
    return result


def _blank(num_rows: int, top: int) -> Sampled:
    """Uninitialised: the compiled step fills every row."""
    # By way of numpy, at half the price of torch.empty: a greedy step of one short row takes 20 us in all.
    return Sampled(
        torch.from_numpy(np.empty(num_rows, np.int64)),
        torch.from_numpy(np.empty(num_rows, np.float32)),
        torch.from_numpy(np.empty(num_rows, np.int8)),
        torch.from_numpy(np.empty((num_rows, top), np.int64)),
        torch.from_numpy(np.empty((num_rows, top), np.float32)),
    )


_NO_EDITS = (np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))


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
