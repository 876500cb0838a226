"""Memory sectors touched, counted exactly: the interpreter is handed every address and predicate of a kernel.

The masks are real ones: every step of three JSON documents, over two vocabularies (see perf/gpu_check.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from guided_kernels import gpu
from guided_kernels.plan import Plan
from guided_testing.kernel_cases import bits_rows, ids_rows, params
from triton.runtime.interpreter import InterpreterBuilder

SECTOR = 32
UNFILTERED = Plan(filters=False)
MASKS = Path(__file__).parents[3] / "perf" / "masks.npz"


@dataclass
class Traffic:
    """Sectors of one tensor that were read and written."""

    start: int
    end: int
    read: set[int] = field(default_factory=set)
    written: set[int] = field(default_factory=set)

    def note(self, book: set[int], addresses: Any, mask: Any, width: int) -> None:
        at = np.asarray(addresses)[np.broadcast_to(np.asarray(mask), np.shape(addresses)).astype(bool)]
        at = at[(at >= self.start) & (at < self.end)] - self.start
        book.update((at // SECTOR).tolist(), ((at + width - 1) // SECTOR).tolist())


@contextmanager
def counted(tensor: torch.Tensor) -> Iterator[Traffic]:
    traffic = Traffic(tensor.data_ptr(), tensor.data_ptr() + tensor.numel() * tensor.element_size())
    load, store = InterpreterBuilder.create_masked_load, InterpreterBuilder.create_masked_store
    width = tensor.element_size()

    def counted_load(builder: Any, pointers: Any, mask: Any, *rest: Any) -> Any:
        traffic.note(traffic.read, pointers.data, mask.data, width)
        return load(builder, pointers, mask, *rest)

    def counted_store(builder: Any, pointers: Any, value: Any, mask: Any, *rest: Any) -> Any:
        traffic.note(traffic.written, pointers.data, mask.data, width)
        return store(builder, pointers, value, mask, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(InterpreterBuilder, "create_masked_load", counted_load)
        patch.setattr(InterpreterBuilder, "create_masked_store", counted_store)
        yield traffic


def real_mask(vocabulary: str, dense: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """The commonest mask of its kind: int32[1, words] and bool[vocab]."""
    stored = np.load(MASKS)
    words, vocab = stored[vocabulary], int(stored[f"{vocabulary}_V"])
    bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")[:, :vocab].astype(bool)
    chosen = np.where((bits.mean(1) > 0.5) == dense, stored[f"{vocabulary}_count"], 0).argmax()
    return torch.from_numpy(words[chosen : chosen + 1].copy()), torch.from_numpy(bits[chosen])


def aligned(vocab: int, dtype: torch.dtype) -> torch.Tensor:
    """Logits that start on a sector."""
    store = torch.randn(vocab + 16, generator=torch.Generator().manual_seed(0)).to(dtype)
    skip = -store.data_ptr() % SECTOR // store.element_size()
    return store[skip : skip + vocab][None]


def sectors(flags: torch.Tensor, tokens: int) -> set[int]:
    """Groups of `tokens` logits of which one is flagged."""
    return set((flags.nonzero()[:, 0] // tokens).tolist())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("dense", [True, False], ids=["dense", "sparse"])
@pytest.mark.parametrize("vocabulary", ["tekken", "qwen"])
def test_masks_in_place_write_the_barred_sectors_and_read_nothing(
    vocabulary: str, dense: bool, dtype: torch.dtype
) -> None:
    words, allowed = real_mask(vocabulary, dense)
    logits = aligned(len(allowed), dtype)
    with counted(logits) as traffic:
        gpu.apply(logits, words, torch.zeros(1, dtype=torch.int32))
    assert traffic.read == set()
    assert traffic.written == sectors(~allowed, SECTOR // logits.element_size())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("dense", [True, False], ids=["dense", "sparse"])
def test_a_bits_row_reads_the_words_that_allow_something_and_a_listed_row_its_sectors(
    dense: bool, dtype: torch.dtype
) -> None:
    _, allowed = real_mask("tekken", dense)
    logits = aligned(len(allowed), dtype)
    per_sector = SECTOR // logits.element_size()
    rows = bits_rows(allowed[None]) if dense else ids_rows([allowed.nonzero()[:, 0].tolist()])
    with counted(logits) as traffic:
        gpu.sample(logits, rows, params(1), logprobs="none", plan=UNFILTERED)
    assert traffic.written == set()
    if dense:
        assert traffic.read == {w * 32 // per_sector + s for w in sectors(allowed, 32) for s in range(32 // per_sector)}
        assert len(traffic.read) <= 1.05 * len(sectors(allowed, per_sector))
    else:
        assert traffic.read == sectors(allowed, per_sector)


def test_a_short_bits_row_reads_no_word_that_allows_nothing() -> None:
    _, allowed = real_mask("tekken", dense=False)
    logits = aligned(len(allowed), torch.float32)
    rows = bits_rows(allowed[None])
    with counted(logits) as traffic:
        gpu.sample(logits, rows, params(1), logprobs="none", plan=UNFILTERED)
    assert traffic.read == {word * 4 + part for word in sectors(allowed, 32) for part in range(4)}
