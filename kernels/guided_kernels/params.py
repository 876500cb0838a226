"""How each row of a step draws its token."""

from __future__ import annotations

from dataclasses import dataclass

import torch

GREEDY_BELOW = 1e-5
HOTTEST = 1e5


@dataclass(frozen=True)
class SampleParams:
    """The draw of every row; all tensors on the device of the logits. Values are not checked: each has a meaning.

    temperature: float32[rows]; below GREEDY_BELOW (and NaN): greedy. Above HOTTEST: as HOTTEST.
    top_k: int32[rows]; 0 or less: off. Exactly k tokens stay, equal logits in the order of their ids.
    top_p: float32[rows]; 1 or more: off. The shortest prefix with at least this mass, never empty.
    min_p: float32[rows]; 0 or less: off. Tokens at least this likely relative to the likeliest, which always stays.
    seed, step: int64[rows]; key and counter of the row's one random number (`philox.uniform`). The same pair draws
    the same token alone, in any batch and in any row of it.
    """

    temperature: torch.Tensor
    top_k: torch.Tensor
    top_p: torch.Tensor
    min_p: torch.Tensor
    seed: torch.Tensor
    step: torch.Tensor

    @staticmethod
    def greedy(num_rows: int, device: torch.device | str = "cpu") -> SampleParams:
        """Every row takes its likeliest allowed token."""

        def filled(value: float, dtype: torch.dtype) -> torch.Tensor:
            return torch.full((num_rows,), value, dtype=dtype, device=device)

        f32, i64 = torch.float32, torch.int64
        return SampleParams(
            filled(0, f32), filled(0, torch.int32), filled(1, f32), filled(0, f32), filled(0, i64), filled(0, i64)
        )
