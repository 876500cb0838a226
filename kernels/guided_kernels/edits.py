"""Sparse additive edits of logits: logit_bias, and penalties turned into edits."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Edits:
    """`logits[row, token] += value` for the draw only: reported raw log-probs don't see it.

    row, token: int64[e]; value: float32[e]. Edits of the same logit add up. Edits outside the logits are an error on
    the CPU and ignored on a GPU, where looking would stall the step. An edit never allows a token that is not allowed.
    """

    row: torch.Tensor
    token: torch.Tensor
    value: torch.Tensor

    def and_also(self, other: Edits) -> Edits:
        """Both sets of edits."""
        return Edits(
            torch.cat((self.row, other.row)),
            torch.cat((self.token, other.token)),
            torch.cat((self.value, other.value)),
        )


@dataclass(frozen=True)
class Seen:
    """Tokens that a row has seen, each pair (row, token) once.

    row, token: int64[e]. output_count: int32[e], how often the token was generated; 0 if it stands in the prompt only.
    """

    row: torch.Tensor
    token: torch.Tensor
    output_count: torch.Tensor


@dataclass(frozen=True)
class Penalties:
    """float32[rows] each. repetition 1, frequency 0 and presence 0 are off."""

    repetition: torch.Tensor
    frequency: torch.Tensor
    presence: torch.Tensor


def penalty_edits(logits: torch.Tensor, seen: Seen, penalties: Penalties) -> Edits:
    """The edits that penalise what has been seen; reads only the logits it edits, and stays on their device.

    x -> (x / repetition if x > 0 else x * repetition) - frequency * count - presence * (count > 0): the repetition
    penalty counts the prompt (transformers, vLLM), the other two generated tokens only (OpenAI).
    """
    x = logits[seen.row, seen.token].float()
    repetition = penalties.repetition[seen.row]
    repeated = torch.where(x > 0, x / repetition, x * repetition)
    count = seen.output_count.float()
    lowered = repeated - penalties.frequency[seen.row] * count - penalties.presence[seen.row] * (count > 0)
    return Edits(seen.row, seen.token, torch.where(x.isinf(), 0.0, lowered - x))
