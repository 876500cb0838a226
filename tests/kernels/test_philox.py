from __future__ import annotations

import pytest
import torch
from guided_kernels import philox


@pytest.mark.parametrize(
    ("counter", "key", "word"),
    [
        ((0, 0, 0, 0), (0, 0), 0x6627E8D5),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, 0x408F276D),
        ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0), 0xD16CFE09),
    ],
)
def test_the_words_are_those_of_the_published_test_vectors(
    counter: tuple[int, ...], key: tuple[int, ...], word: int
) -> None:
    as_tensors = tuple(torch.tensor([w]) for w in counter), tuple(torch.tensor([w]) for w in key)
    assert philox.first_word(*as_tensors).item() == word


def test_the_uniform_is_exact_in_float32_and_never_0_or_1() -> None:
    drawn = philox.uniform(torch.full((100_000,), -7), torch.arange(100_000) - 50_000)
    assert torch.equal(drawn.float().double(), drawn)
    assert 0 < drawn.min() < 1e-4 and 1 - 1e-4 < drawn.max() < 1
    assert abs(drawn.mean() - 0.5) < 5 * (1 / 12 / 100_000) ** 0.5


@pytest.mark.parametrize(("seed", "step"), [(1, 0), (0, 1), (1 << 40, 0), (0, 1 << 40), (-1, 0), (0, -1)])
def test_every_half_of_seed_and_step_counts(seed: int, step: int) -> None:
    zero = torch.tensor([0])
    assert philox.uniform(zero, zero) != philox.uniform(torch.tensor([seed]), torch.tensor([step]))
