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

from guided_engine.kv_cache import KVCache, LayerSlots
from guided_engine.transfer import on_device

NAME = "guided_slots"
_SHORT = 8
# torch's CPU attention sums over keys in blocks of this size; a block cut short is summed in another order
KEY_BLOCK = 512


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
    multiple: above 1, the step has a multiple of so many tokens, its last one repeated num_spare times, and no product
    has fewer rows, and keys are read in whole blocks: a row's sums are then made in one order, whatever its company.
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
    multiple: int = 1
    num_spare: int = 0
    masks: dict[tuple[int, int], torch.Tensor] = field(default_factory=dict)

    @staticmethod
    def build(
        cache: KVCache,
        past: Sequence[int],
        chunks: Sequence[Sequence[int]],
        sampling: Sequence[int],
        multiple: int = 1,
    ) -> Step:
        """Row i adds chunks[i] behind its past[i] positions; the rows in `sampling` draw."""
        old, new = np.array(past), np.array([len(c) for c in chunks])
        ids = np.fromiter(chain.from_iterable(chunks), np.int64, int(new.sum()))
        stops = np.cumsum(new)
        starts, rows = stops - new, np.repeat(np.arange(len(new)), new)
        positions = np.arange(stops[-1]) - starts[rows] + old[rows]
        width = int(new[new <= _SHORT].max(initial=1))
        gather = np.maximum(stops[:, None] - width + np.arange(width), starts[:, None])
        long = np.flatnonzero(new > _SHORT)
        where = rows * cache.slot_len + positions
        keep = (stops - 1)[np.array(sampling, np.int64)]
        spare = -int(new.sum()) % multiple
        padded = (np.concatenate((column, np.repeat(column[-1:], spare))) for column in (ids, positions, where))
        tensors = on_device(cache.device, *padded, keep, gather, positions[gather])
        end = int((old + new).max())
        return Step(
            cache,
            tensors[0],
            tensors[1],
            tensors[2],
            tensors[3],
            tensors[4],
            tensors[5],
            tuple(Long(i, int(starts[i]), int(stops[i]), int(old[i] + new[i])) for i in long),
            -(-end // KEY_BLOCK) * KEY_BLOCK if multiple > 1 else end,
            multiple,
            spare,
        )

    @property
    def is_decode(self) -> bool:
        """Every row adds one token."""
        return self.gather.shape == (self.ids.numel() - self.num_spare, 1)

    def num_missing(self, queries: int) -> int:
        """Queries to add to those of a row."""
        return max(0, self.multiple - queries)

    def group_mask(self, window: int, group: int) -> torch.Tensor:
        """bool[n, 1, group * q, S]: the positions that each query of `gather` sees, `group` times over.

        window 0: all before it. Made once a step, as it is the same for all layers with this window.
        """
        if (window, group) not in self.masks:
            at, query = torch.arange(self.max_end, device=self.where.device), self.query_positions[..., None]
            seen = at <= query
            if window:
                seen &= at > query - window
            grouped = seen[:, None].repeat(1, 1, group, 1)
            self.masks[window, group] = F.pad(grouped, (0, 0, 0, self.num_missing(grouped.shape[2])), value=True)
        return self.masks[window, group]


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
    step, window = guided_step, sliding_window or 0
    slots = step.cache.layers[module.layer_idx]
    slots.write(step.where, key[0], value[0])
    how = _How(slots, window, scaling, softcap)
    tokens = query[0].transpose(0, 1)
    mixed = _short_rows(step, tokens, how)
    if step.is_decode:
        spare = mixed[-1:].expand(step.num_spare, -1, -1)
        return (torch.cat((mixed, spare)) if step.num_spare else mixed)[None], None
    out = torch.empty_like(tokens)
    out[step.gather.view(-1)] = mixed
    for long in step.longs:
        out[long.start : long.stop] = _long_row(step, tokens, long, how)
    if step.num_spare:
        out[-step.num_spare :] = out[-step.num_spare - 1]
    return out[None], None


@dataclass(frozen=True)
class _How:
    """One layer's cache, and how it attends."""

    slots: LayerSlots
    window: int
    scale: float | None
    softcap: float | None


def _short_rows(step: Step, tokens: torch.Tensor, how: _How) -> torch.Tensor:
    """[T, heads, dim] -> [n * q, heads, dim], the tokens of `step.gather` in its order."""
    shape, (rows, width) = step.cache.shape, step.gather.shape
    # heads that share keys become queries of one head, so that keys are read once
    short = tokens[:rows] if step.is_decode else tokens[step.gather.view(-1)]
    short = short.reshape(rows, width, shape.heads, -1, shape.head_dim)
    group = short.shape[3]
    short = short[:, 0] if width == 1 else short.permute(0, 2, 3, 1, 4).reshape(rows, shape.heads, group * width, -1)
    k, v = (part[:rows, : step.max_end].transpose(1, 2) for part in (how.slots.keys, how.slots.values))
    if missing := step.num_missing(group * width):
        short = F.pad(short, (0, 0, 0, missing))
    mixed = _mix(short, k, v, step.group_mask(how.window, group), how)[:, :, : group * width]
    if width == 1:
        return mixed.reshape(rows, *tokens.shape[1:])
    return mixed.reshape(rows, shape.heads, group, width, -1).permute(0, 3, 1, 2, 4).reshape(-1, *tokens.shape[1:])


def _long_row(step: Step, tokens: torch.Tensor, long: Long, how: _How) -> torch.Tensor:
    """[T, heads, dim] -> [tokens of the row, heads, dim]."""
    shape, size = step.cache.shape, long.stop - long.start
    end = -(-long.end // KEY_BLOCK) * KEY_BLOCK if step.multiple > 1 else long.end
    k, v = (part[long.slot, :end].transpose(0, 1)[None] for part in (how.slots.keys, how.slots.values))
    seen = F.pad(_causal(long, how.window, tokens.device), (0, end - long.end))
    asked = tokens[long.start : long.stop].transpose(0, 1)[None]
    if step.multiple > 1:
        # the grouping of short chunks, as torch may compute heads that share keys in another way
        group = tokens.shape[1] // shape.heads
        seen, asked = seen.repeat(1, 1, group, 1), asked.reshape(1, shape.heads, -1, shape.head_dim)
    return _mix(asked, k, v, seen, how).reshape(1, -1, size, shape.head_dim)[0].transpose(0, 1)


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
    how: _How,
) -> torch.Tensor:
    """softmax(scale * q.k, over what is seen) . v; capped by softcap * tanh(x / softcap) where a model asks for it."""
    scale, softcap = how.scale, how.softcap
    if softcap is None:
        return F.scaled_dot_product_attention(query, key, value, attn_mask=seen, scale=scale, enable_gqa=True)
    group = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(group, 1), value.repeat_interleave(group, 1)
    scores = torch.tanh(query @ key.transpose(2, 3) * (scale or query.shape[-1] ** -0.5) / softcap) * softcap
    return torch.softmax(scores.masked_fill(~seen, -torch.inf).float(), -1).to(query.dtype) @ value


def register() -> None:
    """Make `NAME` known to transformers; the step reaches `attend` as the model's keyword `guided_step`."""
    AttentionInterface.register(NAME, attend)
