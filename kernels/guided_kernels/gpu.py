"""`sample` for CUDA tensors: the launches of one step.

Nothing here waits for the device, so a CUDA graph can hold a step.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton

from guided_kernels._apply_triton import apply_bits
from guided_kernels._cut_triton import cut_rows
from guided_kernels._ids_triton import draw_ids
from guided_kernels._rows_triton import draw_rows, tile_stats
from guided_kernels._top_triton import top_rows
from guided_kernels._triton_math import CONSTRAINED, RAW, SILENT
from guided_kernels.edits import Edits
from guided_kernels.params import SampleParams
from guided_kernels.plan import ANYTHING, Plan
from guided_kernels.rows import MAX_IDS, Rows
from guided_kernels.sampled import LogprobsOf, Sampled

BLOCK = 2048
_LAW = {"raw": RAW, "constrained": CONSTRAINED, "none": SILENT}


@dataclass(frozen=True)
class _Tiles:
    """What the launches of a step hand on, by row and tile; cut_value, cut_id by row."""

    high: torch.Tensor
    total: torch.Tensor
    law_high: torch.Tensor
    law_total: torch.Tensor
    first: torch.Tensor
    cut_value: torch.Tensor
    cut_id: torch.Tensor

    @staticmethod
    def empty(num_rows: int, num_tiles: int, device: torch.device) -> _Tiles:
        floats = torch.empty((4, num_rows, num_tiles), dtype=torch.float32, device=device)
        first = torch.empty((num_rows, num_tiles), dtype=torch.int32, device=device)
        cut = torch.empty((2, num_rows), dtype=torch.int32, device=device)
        high, total, law_high, law_total = floats.unbind()
        return _Tiles(high, total, law_high, law_total, first, cut[0].view(torch.float32), cut[1])


def sample(
    logits: torch.Tensor,
    rows: Rows,
    params: SampleParams,
    top_logprobs: int = 0,
    edits: Edits | None = None,
    logprobs: LogprobsOf = "raw",
    plan: Plan = ANYTHING,
) -> Sampled:
    """As `guided_kernels.sample.sample`.

    Rows may not point outside their tables: nothing looks, as looking would stall the step. Edits cost a float32 copy
    of the logits.
    """
    logits = logits if logits.stride(1) == 1 else logits.contiguous()
    rows = Rows(*(column.contiguous() for column in vars(rows).values()))
    params = SampleParams(*(column.contiguous() for column in vars(params).values()))
    edited = logits if edits is None else _edited(logits, edits)
    num_rows, vocab = logits.shape
    num_tiles = triton.cdiv(vocab, BLOCK)
    tiles = _Tiles.empty(num_rows, num_tiles, logits.device)
    result = _blank(num_rows, top_logprobs, logits.device)
    if num_rows == 0:
        return result
    law, strides = _LAW[logprobs], (logits.stride(0), edited.stride(0), rows.bits.stride(0))
    size = vocab, rows.bits.shape[1]
    shape = {"HAS_TAIL": vocab % 32 != 0, "BLOCK": BLOCK}
    width = triton.next_power_of_2(num_tiles)
    stats = tiles.high, tiles.total
    law_stats = tiles.law_high, tiles.law_total
    table = rows.kind, rows.index, rows.bits
    if plan.dense or law == RAW:
        tile_stats[(num_rows, num_tiles)](
            logits, edited, *table, params.temperature, *stats, tiles.first, *law_stats, *size, *strides, num_tiles,
            LAW=law, **shape)  # fmt: skip
    if plan.dense and plan.filters:
        cut_rows[(num_rows,)](
            edited, *table, params.temperature, params.top_k, params.top_p, params.min_p, *stats,
            tiles.cut_value, tiles.cut_id, *size, *strides[1:], num_tiles,
            TILES=width, num_warps=8, **shape)  # fmt: skip
    drawn = result.ids, result.logprobs, result.status
    if plan.dense:
        draw_rows[(num_rows,)](
            logits, edited, *table, params.temperature, params.min_p, params.seed, params.step, *stats, tiles.first,
            *law_stats, tiles.cut_value, tiles.cut_id, *drawn, *size, *strides, num_tiles,
            LAW=law, FILTERS=plan.filters, TILES=width, **shape)  # fmt: skip
    if plan.listed:
        draw_ids[(num_rows,)](
            logits, edited, rows.kind, rows.index, rows.ids, rows.num_ids, params.temperature, params.top_k,
            params.top_p, params.min_p, params.seed, params.step, *law_stats, *drawn, result.top_ids,
            result.top_logprobs, vocab, *strides[:2], rows.ids.stride(0), num_tiles, top_logprobs,
            LAW=law, FILTERS=plan.filters, K=MAX_IDS, TILES=width)  # fmt: skip
    if top_logprobs and law != SILENT:
        source = logits if law == RAW else edited
        top_rows[(num_rows,)](
            source, *table, *law_stats, result.status, result.top_ids, result.top_logprobs, *size, source.stride(0),
            strides[2], num_tiles, top_logprobs, LAW=law, TILES=width, **shape)  # fmt: skip
    return result


def apply(logits: torch.Tensor, bits: torch.Tensor, row_ids: torch.Tensor) -> None:
    """logits[row_ids[i], t] = -inf, in place, where bit t of bits[i] is 0 or past its last word.

    logits: [rows, vocab], unit stride along the vocabulary. bits: int32[n, words]. row_ids: int32[n], distinct.
    Raises ValueError for logits of another stride.
    """
    if logits.stride(1) != 1:
        raise ValueError(f"logits must have stride 1 along the vocabulary, got {logits.stride(1)}")
    bits, row_ids, vocab = bits.contiguous(), row_ids.contiguous(), logits.shape[1]
    if len(row_ids):
        apply_bits[(len(row_ids), triton.cdiv(vocab, BLOCK))](
            logits, bits, row_ids, vocab, bits.shape[1], logits.stride(0), bits.stride(0),
            HAS_TAIL=vocab % 32 != 0, BLOCK=BLOCK)  # fmt: skip


def _blank(num_rows: int, top: int, device: torch.device) -> Sampled:
    return Sampled(
        torch.empty(num_rows, dtype=torch.int64, device=device),
        torch.empty(num_rows, device=device),
        torch.empty(num_rows, dtype=torch.int8, device=device),
        torch.full((num_rows, top), -1, device=device),
        torch.full((num_rows, top), -torch.inf, device=device),
    )


def _edited(logits: torch.Tensor, edits: Edits) -> torch.Tensor:
    """A float32 copy with the edits; those outside land on the first logit as zeros."""
    num_rows, vocab = logits.shape
    inside = (edits.row >= 0) & (edits.row < num_rows) & (edits.token >= 0) & (edits.token < vocab)
    row, token = edits.row.where(inside, 0), edits.token.where(inside, 0)
    edited = logits.to(torch.float32, copy=True)
    return edited.index_put_((row, token), edits.value.where(inside, 0.0), accumulate=True)
