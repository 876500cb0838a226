"""The door of `sample`: shapes, dtypes and devices, looked at without reading a value."""

from __future__ import annotations

import torch

from guided_kernels.edits import Edits
from guided_kernels.params import SampleParams
from guided_kernels.rows import MAX_IDS, Rows

LOGIT_DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def check(logits: torch.Tensor, rows: Rows, params: SampleParams, top_logprobs: int, edits: Edits | None) -> None:
    """Raises ValueError naming the argument, what it must be and what came."""
    if logits.dim() != 2 or logits.dtype not in LOGIT_DTYPES or logits.shape[1] == 0:
        raise ValueError(f"logits must be [rows, vocab] of fp32, bf16 or fp16, got {_seen(logits)}")
    num_rows, vocab = logits.shape
    if not 0 <= top_logprobs <= vocab:
        raise ValueError(f"top_logprobs must lie from 0 to {vocab}, got {top_logprobs}")
    if rows.bits.dim() != 2:
        raise ValueError(f"rows.bits must be torch.int32[b, words], got {_seen(rows.bits)}")
    num_lists = len(rows.ids)
    _expect("rows.bits", rows.bits, torch.int32, tuple(rows.bits.shape), logits)
    _expect("rows.ids", rows.ids, torch.int32, (num_lists, MAX_IDS), logits)
    _expect("rows.num_ids", rows.num_ids, torch.int32, (num_lists,), logits)
    per_row = {
        "rows.kind": (rows.kind, torch.int32),
        "rows.index": (rows.index, torch.int32),
        "params.temperature": (params.temperature, torch.float32),
        "params.top_k": (params.top_k, torch.int32),
        "params.top_p": (params.top_p, torch.float32),
        "params.min_p": (params.min_p, torch.float32),
        "params.seed": (params.seed, torch.int64),
        "params.step": (params.step, torch.int64),
    }
    for name, (tensor, dtype) in per_row.items():
        _expect(name, tensor, dtype, (num_rows,), logits)
    if edits is not None:
        num_edits = edits.row.shape[0]
        _expect("edits.row", edits.row, torch.int64, (num_edits,), logits)
        _expect("edits.token", edits.token, torch.int64, (num_edits,), logits)
        _expect("edits.value", edits.value, torch.float32, (num_edits,), logits)


def _expect(name: str, tensor: torch.Tensor, dtype: torch.dtype, shape: tuple[int, ...], logits: torch.Tensor) -> None:
    if tensor.dtype != dtype or tuple(tensor.shape) != shape or tensor.device != logits.device:
        raise ValueError(f"{name} must be {dtype}{list(shape)} on {logits.device}, got {_seen(tensor)}")


def _seen(tensor: torch.Tensor) -> str:
    return f"{tensor.dtype}{list(tensor.shape)} on {tensor.device}"
