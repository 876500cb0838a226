"""What each row of a step may draw: nothing held back, a bitmask, a short id list, or one forced token."""

from __future__ import annotations

from dataclasses import dataclass

import torch

UNCONSTRAINED = 0
BITS = 1
IDS = 2
FORCED = 3

MAX_IDS = 1024


@dataclass(frozen=True)
class Rows:
    """The constraint of every row of a step; all tensors on the device of the logits.

    kind: int32[rows], one of UNCONSTRAINED, BITS, IDS, FORCED.
    index: int32[rows]: unused, row of `bits`, row of `ids`, the token id. Rows may share a row of `bits` or `ids`.
    bits: int32[b, words]; bit j of word w allows token 32 * w + j. Tokens past the last word are not allowed; bits
    past the vocabulary are ignored.
    ids: int32[k, MAX_IDS], ascending and distinct; only the first num_ids of a row count. Ids outside the vocabulary
    are not allowed. A FORCED id outside the vocabulary allows nothing.
    num_ids: int32[k].
    """

    kind: torch.Tensor
    index: torch.Tensor
    bits: torch.Tensor
    ids: torch.Tensor
    num_ids: torch.Tensor

    @staticmethod
    def unconstrained(num_rows: int, device: torch.device | str = "cpu") -> Rows:
        """`num_rows` rows that allow every token."""

        def empty(*shape: int) -> torch.Tensor:
            return torch.zeros(shape, dtype=torch.int32, device=device)

        return Rows(empty(num_rows), empty(num_rows), empty(0, 1), empty(0, MAX_IDS), empty(0))
