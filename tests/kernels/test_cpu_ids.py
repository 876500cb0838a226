from __future__ import annotations

import numpy as np
import pytest
import torch
from guided_kernels._cpu_ids import list_ids
from guided_kernels.rows import MAX_IDS
from guided_testing.kernel_cases import MASK_KINDS, mask, packed


@pytest.mark.parametrize("vocab", [1, 32, 33, 1000, 1024, 1025, 70_001])
@pytest.mark.parametrize("kind", MASK_KINDS)
def test_exactly_what_the_bits_allow_is_listed_or_nothing(kind: str, vocab: int) -> None:
    allowed = mask(kind, vocab, torch.Generator().manual_seed(vocab))
    ids = np.zeros(MAX_IDS, np.int32)
    found = list_ids(packed(allowed[None]).numpy()[0], vocab, ids)
    wanted = allowed.nonzero()[:, 0].tolist()
    assert (found == -1) if len(wanted) > MAX_IDS else (ids[:found].tolist() == wanted)


@pytest.mark.parametrize(("allowed", "capacity", "found"), [(8, 8, 8), (9, 8, -1), (0, 8, 0), (0, 0, 0), (1, 0, -1)])
def test_listing_stops_where_the_ids_no_longer_fit(allowed: int, capacity: int, found: int) -> None:
    words = np.zeros(16, np.int32)
    words[:allowed] = 1
    ids = np.full(capacity, -7, np.int32)
    assert list_ids(words, 512, ids) == found
    assert ids.tolist() == [32 * i for i in range(min(allowed, capacity))] + [-7] * (capacity - allowed)


def test_bits_past_the_vocabulary_are_not_listed() -> None:
    ids = np.zeros(64, np.int32)
    assert list_ids(np.full(2, -1, np.int32), 40, ids) == 40 and ids[39] == 39
