"""`sample` for CPU tensors: compiled loops over 32-token words that read the logits of allowed words only."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from guided_kernels._cpu_step import CONSTRAINED, RAW, SILENT, Out, Step, compiled
from guided_kernels._numba import source_digest
from guided_kernels.edits import Edits
from guided_kernels.params import SampleParams
from guided_kernels.rows import BITS, IDS, MAX_IDS, Rows
from guided_kernels.sampled import LogprobsOf, Sampled

_REPORT = {"raw": RAW, "constrained": CONSTRAINED, "none": SILENT}

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
    Also raises ValueError for an index of a row table or an edit that points outside.
    """
    _check_values(rows)
    num_rows = len(logits)
    result = Sampled(
        torch.empty(num_rows, dtype=torch.int64),
        torch.empty(num_rows),
        torch.empty(num_rows, dtype=torch.int8),
        torch.full((num_rows, top_logprobs), -1),
        torch.full((num_rows, top_logprobs), -torch.inf),
    )
    out = Out(*(tensor.numpy() for tensor in vars(result).values()))
    _run()(_step(logits, rows, params, edits), _REPORT[logprobs], out)
    return result


def _step(logits: torch.Tensor, rows: Rows, params: SampleParams, edits: Edits | None) -> Step:
    flat, stride = _flat(logits.detach())
    empty = flat[:0]
    half = flat.dtype == torch.float16
    if flat.dtype == torch.float32:
        x32, x16 = flat.numpy(), empty.view(torch.int16).numpy()
    else:
        x32, x16 = empty.float().numpy(), flat.view(torch.int16).numpy()
    everything = np.full((logits.shape[1] + 31) // 32, -1, np.int32)
    fields: list[Any] = [x32, x16.view(np.uint16), half, stride, logits.shape[1], everything]
    fields += [t.contiguous().numpy() for t in (*vars(rows).values(), *vars(params).values())]
    fields += _by_row(edits, *logits.shape)
    return Step(*fields)


def _flat(logits: torch.Tensor) -> tuple[torch.Tensor, int]:
    """The logits as one contiguous vector (compiled loops over any other aren't vectorised) and the stride of rows."""
    if logits.stride(1) != 1:
        logits = logits.contiguous()
    num_rows, vocab = logits.shape
    stride = logits.stride(0)
    return torch.as_strided(logits, ((num_rows - 1) * stride + vocab if num_rows else 0,), (1,)), stride


def _by_row(edits: Edits | None, num_rows: int, vocab: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Start of each row's edits, their tokens ascending and distinct, their values summed."""
    if edits is None or not len(edits.row):
        return np.zeros(num_rows + 1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32)
    row, token = edits.row.numpy(), edits.token.numpy()
    outside = (row < 0) | (row >= num_rows) | (token < 0) | (token >= vocab)
    if outside.any():
        at = int(outside.argmax())
        raise ValueError(f"edit {at} must lie in logits [{num_rows}, {vocab}], got [{row[at]}, {token[at]}]")
    place, group = np.unique(row * vocab + token, return_inverse=True)
    value = np.bincount(group, edits.value.numpy(), len(place)).astype(np.float32)
    return np.searchsorted(place // vocab, np.arange(num_rows + 1)), place % vocab, value


def _check_values(rows: Rows) -> None:
    """Compiled code doesn't check bounds, so a wrong table would read foreign memory."""
    kind, index = rows.kind.numpy(), rows.index.numpy()
    for name, of_kind, size in (("bits", BITS, len(rows.bits)), ("ids", IDS, len(rows.ids))):
        outside = (kind == of_kind) & ((index < 0) | (index >= size))
        if outside.any():
            at = int(outside.argmax())
            raise ValueError(f"rows.index[{at}] must be a row of the {size} {name}, got {index[at]}")
    num_ids = rows.num_ids.numpy()
    if len(num_ids) and not 0 <= num_ids.min() <= num_ids.max() <= MAX_IDS:
        raise ValueError(f"rows.num_ids must lie from 0 to {MAX_IDS}, got {num_ids.min()} to {num_ids.max()}")
