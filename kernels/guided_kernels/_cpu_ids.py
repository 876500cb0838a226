"""A bitmask as a list of ids. Real masks are bimodal: a handful of tokens, or nearly all of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from guided_kernels._numba import jit, lowest_bit


@jit
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
