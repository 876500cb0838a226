from __future__ import annotations

import numpy as np
import pytest
import torch
from guided_kernels import reference
from guided_kernels.classify import list_ids, rows_of
from guided_kernels.rows import BITS, FORCED, IDS, MAX_IDS, UNCONSTRAINED
from guided_testing.kernel_cases import MASK_KINDS, mask, packed


@pytest.mark.parametrize("vocab", [1, 32, 33, 1000, 1024, 1025, 70_001])
@pytest.mark.parametrize("kind", MASK_KINDS)
def test_rows_of_allows_exactly_what_the_bits_allow(kind: str, vocab: int) -> None:
    allowed = mask(kind, vocab, torch.Generator().manual_seed(vocab))[None]
    rows = rows_of(packed(allowed).numpy(), np.array([True]), vocab)
    count = int(allowed.sum())
    assert rows.kind.item() == (FORCED if count == 1 else IDS if count <= MAX_IDS else BITS)
    assert torch.equal(reference.allowed_tokens(rows, vocab), allowed)


def test_a_row_that_is_not_constrained_is_free_whatever_its_bits() -> None:
    rows = rows_of(np.zeros((2, 1), np.int32), np.array([False, True]), 20)
    assert rows.kind.tolist() == [UNCONSTRAINED, IDS] and rows.num_ids.tolist() == [0, 0]


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
