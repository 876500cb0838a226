"""`sample` for CPU tensors: compiled loops over 32-token words that read the logits of allowed words only."""

from __future__ import annotations

from functools import cache, lru_cache

import numpy as np
import torch

from guided_kernels._cpu_call import EditColumns, StepCall
from guided_kernels._cpu_step import compiled
from guided_kernels._numba import source_digest
from guided_kernels.edits import Edits
from guided_kernels.params import SampleParams
from guided_kernels.rows import BITS, MAX_IDS, Rows
from guided_kernels.sampled import LogprobsOf, Sampled

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
    if logits.stride(1) != 1:
        logits = logits.contiguous()  # compiled loops over a strided row aren't vectorised
    num_rows, vocab = logits.shape
    edited = None if edits is None else _by_row(edits, num_rows, vocab)
    result = _blank(num_rows, top_logprobs)
    call = StepCall(logits, rows, params, result, edited, logprobs)
    outside, _ = _run()(call.address)
    if outside >= 0:
        raise ValueError(_complaint(rows, outside))
    return result


# Every tensor made costs a twentieth of a step of one short row.
def _blank(num_rows: int, top: int) -> Sampled:
    """Uninitialised: the compiled step fills every row."""
    ids = torch.from_numpy(np.empty(num_rows, np.int64))
    logprobs = torch.from_numpy(np.empty(num_rows, np.float32))
    status = torch.from_numpy(np.empty(num_rows, np.int8))
    return Sampled(ids, logprobs, status, *(_alternatives(num_rows, top) if top else _no_alternatives(num_rows)))


def _alternatives(num_rows: int, top: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.empty((num_rows, top), dtype=torch.int64), torch.empty((num_rows, top))


@lru_cache(maxsize=256)
def _no_alternatives(num_rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Nothing can be written to tensors without elements, so that steps may share them."""
    return _alternatives(num_rows, 0)


def _by_row(edits: Edits, num_rows: int, vocab: int) -> EditColumns | None:
    """Start of each row's edits, their tokens ascending and distinct, their values summed; None if there are none."""
    if not len(edits.row):
        return None
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
