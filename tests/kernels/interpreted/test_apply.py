from __future__ import annotations

import math

import pytest
import torch
from guided_kernels import gpu
from guided_testing.kernel_cases import MASK_KINDS, mask, packed


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize(("vocab", "more_words"), [(32, 0), (97, 0), (1000, -1), (2048, 0), (2080, 3), (4127, -3)])
def test_only_barred_logits_of_listed_rows_are_written(vocab: int, more_words: int, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(vocab)
    allowed = torch.stack([mask(kind, vocab, generator) for kind in MASK_KINDS])
    num_words = max(1, (vocab + 31) // 32 + more_words)
    rows = torch.randperm(len(MASK_KINDS) + 2, generator=generator)[: len(MASK_KINDS)].int()
    store = torch.randn(len(MASK_KINDS) + 2, vocab + 5, generator=generator).to(dtype)
    want = store.clone()
    for i, row in enumerate(rows.tolist()):
        barred = ~allowed[i]
        barred[num_words * 32 :] = True
        want[row, :vocab].masked_fill_(barred, -math.inf)
    gpu.apply(store[:, :vocab], packed(allowed, num_words), rows)
    assert torch.equal(store, want)


def test_strided_vocabularies_are_refused() -> None:
    with pytest.raises(ValueError, match="must have stride 1 along the vocabulary, got 2"):
        gpu.apply(torch.zeros(1, 64)[:, ::2], torch.zeros(1, 1, dtype=torch.int32), torch.zeros(1, dtype=torch.int32))
