"""Keys and values of the running rows: one slot of `max_len` positions per row."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

_BLOCK = 256


@dataclass(frozen=True)
class CacheShape:
    """Sizes of the cache; `tokens` is the cap over all rows."""

    layers: int
    heads: int
    head_dim: int
    rows: int
    max_len: int
    tokens: int

    def token_bytes(self, dtype: torch.dtype) -> int:
        """Bytes that one token takes over all layers."""
        return 2 * self.layers * self.heads * self.head_dim * dtype.itemsize


class LayerSlots:
    """One layer's part of the cache, as views: keys and values [slot, position, head, dim]."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.keys, self.values = tensor
        self._flat = [part.view(-1, *part.shape[2:]) for part in (self.keys, self.values)]

    def write(self, where: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> None:
        """key, value [head, T, dim] go to the positions `where` [T] of the flattened slots."""
        for flat, new in zip(self._flat, (key, value), strict=True):
            flat.index_copy_(0, where, new.transpose(0, 1))


class KVCache:
    """Slots laid out (layer, key|value, slot, position, head, dim); positions of a row are contiguous.

    The memory of a slot that no row uses keeps what it held, so that a prompt with the same beginning can copy it.
    """

    def __init__(self, shape: CacheShape, dtype: torch.dtype, device: torch.device, block: int = 1) -> None:
        """block: slots are as long as a multiple of this."""
        self.shape = shape
        self.slot_len = -(-shape.max_len // block) * block
        size = (shape.layers, 2, shape.rows, self.slot_len, shape.heads, shape.head_dim)
        self.tensor = _zeros(size, dtype, device)
        # views are made once: in a step of one row each costs as much as a small kernel
        self.layers = [LayerSlots(layer) for layer in self.tensor]
        self._held: dict[int, list[int]] = {}

    @property
    def device(self) -> torch.device:
        return self.tensor.device

    def copy(self, source: int, target: int, num_tokens: int) -> None:
        """The first `num_tokens` positions of one slot, into another."""
        if source != target and num_tokens:
            self.tensor[:, :, target, :num_tokens] = self.tensor[:, :, source, :num_tokens]

    def hold(self, slot: int, tokens: list[int]) -> None:
        """`slot` is free and its positions hold these tokens."""
        self._held[slot] = tokens

    def take(self, slot: int) -> None:
        """A row is about to write into `slot`."""
        self._held.pop(slot, None)

    def held(self) -> list[tuple[int, list[int]]]:
        """What the free slots hold."""
        return list(self._held.items())


def _zeros(size: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Zeros, because a masked position must hold a finite number, or 0 * NaN would spread."""
    if device.type != "cpu":
        return torch.zeros(size, dtype=dtype, device=device)
    # torch writes its zeros, which makes every page of every slot real at once; NumPy asks the system for zero pages
    return torch.from_numpy(np.zeros(math.prod(size) * dtype.itemsize, np.uint8)).view(dtype).view(size)


def common_prefix(a: list[int], b: list[int]) -> int:
    """How many leading tokens two sequences share."""
    end = min(len(a), len(b))
    for start in range(0, end, _BLOCK):
        stop = min(start + _BLOCK, end)
        if a[start:stop] != b[start:stop]:
            return next(i for i in range(start, stop) if a[i] != b[i])
    return end
