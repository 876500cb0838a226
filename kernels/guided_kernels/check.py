"""The door of `sample`: shapes, dtypes and devices, looked at without reading a value."""

from __future__ import annotations

import torch

from guided_kernels.edits import Edits
from guided_kernels.params import SampleParams
from guided_kernels.rows import MAX_IDS, Rows

LOGIT_DTYPES = (torch.float32, torch.bfloat16, torch.float16)
MAX_TOP_LOGPROBS = 128

_ROWS = {"kind": torch.int32, "index": torch.int32}
_PARAMS = {"temperature": torch.float32, "top_k": torch.int32, "top_p": torch.float32, "min_p": torch.float32,
           "seed": torch.int64, "step": torch.int64}  # fmt: skip
_EDITS = {"row": torch.int64, "token": torch.int64, "value": torch.float32}


def check(logits: torch.Tensor, rows: Rows, params: SampleParams, top_logprobs: int, edits: Edits | None) -> None:
    """Raises ValueError naming the argument, what it must be and what came."""
    shape, device = logits.shape, logits.device
    if len(shape) != 2 or logits.dtype not in LOGIT_DTYPES or shape[1] == 0:
        raise ValueError(f"logits must be [rows, vocab] of fp32, bf16 or fp16, got {_seen(logits)}")
    num_rows, vocab = shape
    most = min(vocab, MAX_TOP_LOGPROBS)
    if not 0 <= top_logprobs <= most:
        raise ValueError(f"top_logprobs must lie from 0 to {most}, got {top_logprobs}")
    _check_tables(rows, params, num_rows, device)
    if edits is not None:
        _expect("edits", edits, _EDITS, (len(edits.row),), device)


def _check_tables(rows: Rows, params: SampleParams, num_rows: int, device: torch.device) -> None:
    if rows.bits.dim() != 2:
        raise ValueError(f"rows.bits must be torch.int32[b, words], got {_seen(rows.bits)}")
    num_lists = len(rows.ids)
    _expect("rows", rows, _ROWS, (num_rows,), device)
    _expect("rows", rows, {"bits": torch.int32}, rows.bits.shape, device)
    _expect("rows", rows, {"ids": torch.int32}, (num_lists, MAX_IDS), device)
    _expect("rows", rows, {"num_ids": torch.int32}, (num_lists,), device)
    _expect("params", params, _PARAMS, (num_rows,), device)


def _expect(
    owner: str, value: object, dtypes: dict[str, torch.dtype], shape: tuple[int, ...], device: torch.device
) -> None:
    columns = vars(value)
    for name, dtype in dtypes.items():
        tensor = columns[name]
        if tensor.dtype is not dtype or tensor.shape != shape or tensor.device != device:
            raise ValueError(f"{owner}.{name} must be {dtype}{list(shape)} on {device}, got {_seen(tensor)}")


def _seen(tensor: torch.Tensor) -> str:
    return f"{tensor.dtype}{list(tensor.shape)} on {tensor.device}"
