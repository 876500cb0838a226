"""Bitmasks to the cheapest kind of row. Real masks are bimodal: a handful of tokens, or nearly all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from guided_kernels._numba import cached_jit, lowest_bit
from guided_kernels.rows import BITS, FORCED, IDS, MAX_IDS, UNCONSTRAINED, Rows


@cached_jit
def list_ids(words: Any, vocab: int, ids: Any) -> int:
    """Write the allowed ids below `vocab` into ids, ascending; how many, or -1 as soon as they don't fit.

    words: int32[words]; ids: int32[capacity]. A dense mask is given up after a few words, so this is the test as well.
    """
    found = 0
    for w in range(min(len(words), (vocab + 31) // 32)):
        word = words[w]
        while word != 0:
            token = w * 32 + lowest_bit(word)
            if token >= vocab:
                break
            if found == len(ids):
                return -1
            ids[found] = token
            found += 1
            word &= np.int32(word - np.int32(1))
    return found


@cached_jit
def _fill(bits: Any, constrained: Any, vocab: int, kind: Any, index: Any, ids: Any, num_ids: Any) -> None:
    for row in range(len(bits)):
        kind[row], index[row], num_ids[row] = UNCONSTRAINED, row, 0
        if constrained[row]:
            found = list_ids(bits[row], vocab, ids[row])
            kind[row] = BITS if found < 0 else FORCED if found == 1 else IDS
            num_ids[row] = max(found, 0)
            if found == 1:
                index[row] = ids[row, 0]


def rows_of(bits: NDArray[np.int32], constrained: NDArray[np.bool_], vocab: int) -> Rows:
    """Row r is bits[r] where constrained[r], else free; CPU tensors, `bits` shared and not copied.

    bits: int32[rows, words]. One allowed token makes a FORCED row, up to MAX_IDS an IDS row (none included). The CPU
    path finds short BITS rows by itself; this is for the tables that go to a GPU.
    """
    num_rows = len(bits)
    kind, index, num_ids = np.empty((3, num_rows), np.int32)
    ids = np.zeros((num_rows, MAX_IDS), np.int32)
    _fill(bits, constrained, vocab, kind, index, ids, num_ids)
    return Rows(*map(torch.from_numpy, (kind, index, bits, ids, num_ids)))
