"""Row tables, logits and comparisons for the tests of guided_kernels."""

from __future__ import annotations

import numpy as np
import torch
from guided_kernels import philox, reference
from guided_kernels.edits import Edits
from guided_kernels.params import SampleParams
from guided_kernels.rows import BITS, FORCED, IDS, MAX_IDS, UNCONSTRAINED, Rows
from guided_kernels.sampled import Sampled

MASK_KINDS = ("dense", "sparse", "half", "all", "none", "runs", "one")


def packed(allowed: torch.Tensor, num_words: int | None = None) -> torch.Tensor:
    """bool[rows, vocab] as int32[rows, num_words]; by default just enough words."""
    num_rows, vocab = allowed.shape
    words = (vocab + 31) // 32 if num_words is None else num_words
    bits = np.zeros((num_rows, words * 32), np.uint8)
    width = min(vocab, words * 32)
    bits[:, :width] = allowed[:, :width].numpy()
    return torch.from_numpy(np.packbits(bits, axis=1, bitorder="little").view("<i4").reshape(num_rows, words).copy())


def mask(kind: str, vocab: int, generator: torch.Generator) -> torch.Tensor:
    """bool[vocab] of one of MASK_KINDS."""
    noise = torch.rand(vocab, generator=generator)
    if kind == "runs":
        runs = (torch.rand((vocab + 31) // 32, generator=generator) < 0.5).repeat_interleave(32)[:vocab].clone()
        runs[::97] ^= True
        return runs
    if kind == "one":
        return torch.arange(vocab) == int(torch.randint(vocab, (1,), generator=generator))
    share = {"dense": 0.97, "sparse": 0.004, "half": 0.5, "all": 1.0, "none": 0.0}[kind]
    return noise < share


def bits_rows(allowed: torch.Tensor, num_words: int | None = None) -> Rows:
    """One BITS row per row of bool[rows, vocab]."""
    num_rows = len(allowed)
    empty = Rows.unconstrained(num_rows)
    index = torch.arange(num_rows, dtype=torch.int32)
    return Rows(torch.full_like(index, BITS), index, packed(allowed, num_words), empty.ids, empty.num_ids)


def ids_rows(lists: list[list[int]]) -> Rows:
    """One IDS row per list."""
    index = torch.arange(len(lists), dtype=torch.int32)
    ids = torch.zeros(len(lists), MAX_IDS, dtype=torch.int32)
    for row, tokens in enumerate(lists):
        ids[row, : len(tokens)] = torch.tensor(tokens, dtype=torch.int32)
    num_ids = torch.tensor([len(tokens) for tokens in lists], dtype=torch.int32)
    return Rows(torch.full_like(index, IDS), index, torch.zeros(0, 1, dtype=torch.int32), ids, num_ids)


def mixed_rows(allowed: torch.Tensor, forced: int) -> Rows:
    """Every row of bool[rows, vocab] as BITS and, if short enough, as IDS; an unconstrained and a forced row last."""
    kinds, indices = [BITS] * len(allowed), list(range(len(allowed)))
    lists = [row.nonzero()[:, 0].tolist() for row in allowed]
    lists = [tokens for tokens in lists if len(tokens) <= MAX_IDS]
    table = ids_rows(lists)
    kinds += [IDS] * len(lists) + [UNCONSTRAINED, FORCED]
    indices += [*range(len(lists)), 0, forced]
    return Rows(
        torch.tensor(kinds, dtype=torch.int32),
        torch.tensor(indices, dtype=torch.int32),
        packed(allowed),
        table.ids,
        table.num_ids,
    )


def params(
    num_rows: int,
    temperature: float | list[float] = 1.0,
    top_k: int | list[int] = 0,
    top_p: float | list[float] = 1.0,
    min_p: float | list[float] = 0.0,
    seed: int = 0,
) -> SampleParams:
    """Parameters by row (a list is repeated to fill the rows); row r draws with step r."""

    def column(values: float | list[float] | list[int], dtype: torch.dtype) -> torch.Tensor:
        cycle = list(values) if isinstance(values, list) else [values]
        return torch.tensor([cycle[row % len(cycle)] for row in range(num_rows)], dtype=dtype)

    return SampleParams(
        column(temperature, torch.float32),
        column(top_k, torch.int32),
        column(top_p, torch.float32),
        column(min_p, torch.float32),
        torch.full((num_rows,), seed, dtype=torch.int64),
        torch.arange(num_rows, dtype=torch.int64),
    )


def assert_agrees(got: Sampled, logits: torch.Tensor, rows: Rows, given: SampleParams, edits: Edits | None) -> int:
    """Status and ids are the oracle's; returns how many ids were compared.

    A float32 sum may fall on the other side of the uniform: an id may differ only where the oracle's own running sum
    comes within 2e-6 of it, and then must be one the law allows.
    """
    want = reference.sample(logits, rows, given, edits=edits)
    assert got.status.tolist() == want.status.tolist()
    allowed = reference.allowed_tokens(rows, logits.shape[1])
    masked = reference.edited_logits(logits, edits).masked_fill(~allowed, -torch.inf)
    for row in (got.ids != want.ids).nonzero()[:, 0].tolist():
        one = SampleParams(*(getattr(given, name)[row : row + 1] for name in vars(given)))
        law = reference.probabilities(masked[row : row + 1], one)[0]
        distance = (law.cumsum(0) - philox.uniform(one.seed, one.step)).abs().min()
        assert law[got.ids[row]] > 0 and distance < 2e-6, f"row {row}: got {got.ids[row]}, want {want.ids[row]}"
    return int((got.ids == want.ids).sum())
