"""Attention of one ragged step over the cache's slots; registered with transformers, so model code stays untouched.

out[t] = softmax(scale * q[t] . K[slot(t), p]) . V[slot(t), p], p over the row's positions up to t's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from transformers import AttentionInterface

from guided_engine.kv_cache import KVCache
from guided_engine.transfer import on_device

NAME = "guided_slots"
_SHORT = 8


@dataclass(frozen=True)
class Long:
    """A row that adds many tokens, computed by itself: tokens [start, stop) of the step, ending at position `end`."""

    slot: int
    start: int
    stop: int
    end: int


@dataclass
class Step:
    """A step's batch as tensors. Row i is slot i. T tokens in all, n rows; S: longest row after the step.

    ids, positions, where: int64[T], token, position in its row and in the flattened slots.
    keep: int64[k], the last token of each row that draws.
    gather: int64[n, q], the last q tokens of each row (q <= 8, the longest short chunk); those a row does not have
    repeat its first. longs: rows with longer chunks; their rows of `gather` are computed and overwritten.
    """

    cache: KVCache
    ids: torch.Tensor
    positions: torch.Tensor
    where: torch.Tensor
    keep: torch.Tensor
    gather: torch.Tensor
    query_positions: torch.Tensor
    longs: tuple[Long, ...]
    max_end: int
    masks: dict[int, torch.Tensor] = field(default_factory=dict)

    @staticmethod
    def build(cache: KVCache, past: Sequence[int], chunks: Sequence[Sequence[int]], sampling: Sequence[int]) -> Step:
        """Row i adds chunks[i] behind its past[i] positions; the rows in `sampling` draw."""
        old, new = np.array(past), np.array([len(c) for c in chunks])
        ids = np.fromiter(chain.from_iterable(chunks), np.int64, int(new.sum()))
        stops = np.cumsum(new)
        starts, rows = stops - new, np.repeat(np.arange(len(new)), new)
        positions = np.arange(stops[-1]) - starts[rows] + old[rows]
        width = int(new[new <= _SHORT].max(initial=1))
        gather = np.maximum(stops[:, None] - width + np.arange(width), starts[:, None])
        long = np.flatnonzero(new > _SHORT)
        where = rows * cache.shape.max_len + positions
        keep = (stops - 1)[np.array(sampling, np.int64)]
        tensors = on_device(cache.device, ids, positions, where, keep, gather, positions[gather])
        return Step(
            cache,
            tensors[0],
            tensors[1],
            tensors[2],
            tensors[3],
            tensors[4],
            tensors[5],
            tuple(Long(i, int(starts[i]), int(stops[i]), int(old[i] + new[i])) for i in long),
            int((old + new).max()),
        )

    def mask(self, window: int) -> torch.Tensor:
        """bool[n, 1, q, S]: the cached positions that each query of `gather` sees; window 0: all before it."""
        if window not in self.masks:
            at, query = torch.arange(self.max_end, device=self.where.device), self.query_positions[..., None]
            seen = at <= query
            if window:
                seen &= at > query - window
            self.masks[window] = seen[:, None]
        return self.masks[window]


def attend(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    guided_step: Step,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """query [1, heads, T, dim], key and value [1, kv heads, T, dim] -> [1, T, heads, dim], as transformers wants it."""
    step, shape = guided_step, guided_step.cache.shape
    keys, values = step.cache.tensor[module.layer_idx]
    for slots, new in ((keys, key), (values, value)):
        slots.view(-1, shape.heads, shape.head_dim).index_copy_(0, step.where, new[0].transpose(0, 1))
    tokens, rows, width = query[0].transpose(0, 1), *step.gather.shape
    window = sliding_window or 0
    # heads that share keys become queries of one head, so that keys are read once
    short = tokens[step.gather.view(-1)].view(rows, width, shape.heads, -1, shape.head_dim).permute(0, 2, 3, 1, 4)
    group = short.shape[2]
    seen = step.mask(window).expand(-1, group, -1, -1).reshape(rows, 1, group * width, -1)
    k, v = (slots[:rows, : step.max_end].transpose(1, 2) for slots in (keys, values))
    mixed = _mix(short.reshape(rows, shape.heads, group * width, -1), k, v, seen, scaling, softcap)
    mixed = (
        mixed.view(rows, shape.heads, group, width, -1).permute(0, 3, 1, 2, 4).reshape(rows * width, *tokens.shape[1:])
    )
    if width == 1 and rows == len(tokens):
        return mixed[None], None
    out = torch.empty_like(tokens)
    out[step.gather.view(-1)] = mixed
    for long in step.longs:
        k, v = (slots[long.slot, : long.end].transpose(0, 1)[None] for slots in (keys, values))
        seen = _causal(long, window, tokens.device)
        mixed = _mix(query[:, :, long.start : long.stop], k, v, seen, scaling, softcap)
        out[long.start : long.stop] = mixed[0].transpose(0, 1)
    return out[None], None


def _causal(long: Long, window: int, device: torch.device) -> torch.Tensor:
    """bool[1, 1, tokens, end]."""
    size = long.stop - long.start
    seen = torch.ones(size, long.end, dtype=torch.bool, device=device).tril(long.end - size)
    return (seen.triu(long.end - size - window + 1) if window else seen)[None, None]


def _mix(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    seen: torch.Tensor,
    scale: float | None,
    softcap: float | None,
) -> torch.Tensor:
    """softmax(scale * q.k, over what is seen) . v; capped by softcap * tanh(x / softcap) where a model asks for it."""
    if softcap is None:
        return F.scaled_dot_product_attention(query, key, value, attn_mask=seen, scale=scale, enable_gqa=True)
    group = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(group, 1), value.repeat_interleave(group, 1)
    scores = torch.tanh(query @ key.transpose(2, 3) * (scale or query.shape[-1] ** -0.5) / softcap) * softcap
    return torch.softmax(scores.masked_fill(~seen, -torch.inf).float(), -1).to(query.dtype) @ value


def register() -> None:
    """Make `NAME` known to transformers; the step reaches `attend` as the model's keyword `guided_step`."""
    AttentionInterface.register(NAME, attend)
