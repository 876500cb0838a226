"""The numbers that a compiled step is called with; those of the tables are kept while the tables are the same."""

from __future__ import annotations

import threading
from array import array
from typing import Any
from weakref import ref

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
_IS_CONTIGUOUS = torch.Tensor.is_contiguous
_UNWRITTEN = (0,) * 10
_VARYING = slice(len(_UNWRITTEN))
_NO_EDITS = (0, 0, 0, 0)

EditColumns = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]


class Standing:
    """A `Call` of which only the logits, the results and the edits are written anew for every step.

    Serves the steps that bring the very same rows and params, at the same addresses, and logits of the same form.
    """

    def __init__(
        self, logits: torch.Tensor, rows: Rows, params: SampleParams, top: int, logprobs: LogprobsOf, scratch: int
    ) -> None:
        self._rows, self._params = ref(rows), ref(params)
        self._form = _form(logits, top, logprobs)
        used = self._addresses = _addresses(rows, params)
        given = (*vars(rows).values(), *vars(params).values())
        # a copy would not see what is written to its original
        self._is_copied = not all(map(_IS_CONTIGUOUS, given))
        if self._is_copied:
            self._columns = [column.contiguous() for column in given]
            used = tuple(map(_ADDRESS, self._columns))
        self._numbers = array("q", (
            *_UNWRITTEN, _ELEMENT[logits.dtype], _REPORT[logprobs], *logits.shape, logits.stride(0),
            *rows.bits.shape, rows.num_ids.shape[0], top, scratch, *used,
        ))  # fmt: skip
        self._address = self._numbers.buffer_info()[0]

    def serves(self, logits: torch.Tensor, rows: Rows, params: SampleParams, top: int, logprobs: LogprobsOf) -> bool:
        return (
            self._rows() is rows
            and self._params() is params
            and not self._is_copied
            and self._form == _form(logits, top, logprobs)
            and self._addresses == _addresses(rows, params)
        )

    def address(self, logits: torch.Tensor, result: Sampled, edited: EditColumns | None) -> int:
        """Where the call of one step lies; what it is given must outlive the step."""
        edits = _NO_EDITS if edited is None else (len(edited[1]), *(column.ctypes.data for column in edited))
        self._numbers[_VARYING] = array("q", (logits.data_ptr(), *map(_ADDRESS, vars(result).values()), *edits))
        return self._address


class _Own(threading.local):
    """A thread's scratch (fresh memory would cost a page fault every 4 KiB) and its last call."""

    def __init__(self) -> None:
        self.scratch: NDArray[np.float64] = np.empty(0)
        self.scratch_address = 0
        self.standing: Standing | None = None


_own = _Own()


def standing_call(logits: torch.Tensor, rows: Rows, params: SampleParams, top: int, logprobs: LogprobsOf) -> Standing:
    """This thread's call for such a step. logits: with rows that are contiguous in themselves."""
    held = _own.standing
    if held is not None and held.serves(logits, rows, params, top, logprobs):
        return held
    _own.standing = None  # it must not outlive its scratch
    size = -(-scratch_bytes(logits.shape[1]) // 8)
    if len(_own.scratch) < size:
        _own.scratch = np.empty(size)
        _own.scratch_address = _own.scratch.ctypes.data
    held = _own.standing = Standing(logits, rows, params, top, logprobs, _own.scratch_address)
    return held


def _form(logits: torch.Tensor, top: int, logprobs: LogprobsOf) -> tuple[Any, ...]:
    return logits.dtype, logits.shape, logits.stride(), top, logprobs


def _addresses(rows: Rows, params: SampleParams) -> tuple[int, ...]:
    return (*map(_ADDRESS, vars(rows).values()), *map(_ADDRESS, vars(params).values()))
