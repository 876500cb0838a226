"""The numbers that a compiled step is called with."""

from __future__ import annotations

import threading
from array import array

import numpy as np
import torch
from numpy.typing import NDArray

from guided_kernels._cpu_arguments import BFLOAT16, CONSTRAINED, FLOAT16, FLOAT32, RAW, SILENT, scratch_bytes
from guided_kernels.params import SampleParams
from guided_kernels.rows import Rows
from guided_kernels.sampled import LogprobsOf, Sampled

_REPORT = {"raw": RAW, "constrained": CONSTRAINED, "none": SILENT}
_ELEMENT = {torch.float32: FLOAT32, torch.float16: FLOAT16, torch.bfloat16: BFLOAT16}

_ADDRESS = torch.Tensor.data_ptr
_NO_EDITS = (0, 0, 0, 0)

EditColumns = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]


class StepCall:
    """A `Call` in memory and what it points to; `address` holds as long as this object does.

    logits: with rows that are contiguous in themselves. The scratch is the thread's: one step at a time in each.
    """

    def __init__(
        self,
        logits: torch.Tensor,
        rows: Rows,
        params: SampleParams,
        result: Sampled,
        edited: EditColumns | None,
        logprobs: LogprobsOf,
    ) -> None:
        edits = _NO_EDITS if edited is None else (len(edited[1]), *(column.ctypes.data for column in edited))
        tables = [column.contiguous() for column in (*vars(rows).values(), *vars(params).values())]
        self._numbers = array("q", (
            logits.data_ptr(), *map(_ADDRESS, vars(result).values()), *edits, _ELEMENT[logits.dtype],
            _REPORT[logprobs], *logits.shape, logits.stride(0), *rows.bits.shape, rows.num_ids.shape[0],
            result.top_ids.shape[1], _own.scratch(logits.shape[1]), *map(_ADDRESS, tables),
        ))  # fmt: skip
        self._used = logits, result, edited, tables
        self.address = self._numbers.buffer_info()[0]


class _Own(threading.local):
    """A thread's scratch, kept between steps: fresh memory would cost a page fault every 4 KiB."""

    def __init__(self) -> None:
        self._vocab, self._scratch = 0, np.empty(0)
        self._address = 0

    def scratch(self, vocab: int) -> int:
        """The address of what a step over `vocab` tokens needs."""
        if vocab > self._vocab:
            self._vocab, self._scratch = vocab, np.empty(-(-scratch_bytes(vocab) // 8))
            self._address = self._scratch.ctypes.data
        return self._address


_own = _Own()
