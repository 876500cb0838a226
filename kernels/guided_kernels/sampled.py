"""What a step drew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

OK = 0
NOTHING_ALLOWED = 1
NOT_A_NUMBER = 2

LogprobsOf = Literal["raw", "constrained", "none"]


@dataclass(frozen=True)
class Sampled:
    """One token per row, on the device of the logits.

    ids: int64[rows]; -1 where status is not OK.
    status: int8[rows]: OK; NOTHING_ALLOWED (or every allowed logit is -inf); NOT_A_NUMBER (an allowed logit, edits
    included, is NaN or +inf, so there is no distribution). A forced token is OK whatever its logit.
    logprobs: float32[rows], of the drawn token; -inf for NOTHING_ALLOWED, NaN for NOT_A_NUMBER.
      "raw": log_softmax(logits)[id], the model's distribution at temperature 1 before mask, edits and filters (NaN if
      any logit of the row is NaN or +inf). "constrained": the same after mask and edits, still at temperature 1 and
      before top-k/p/min-p; 0 for a forced token. "none": NaN, not computed.
    top_ids: int64[rows, k], top_logprobs: float32[rows, k]: the k likeliest under the same distribution, ids ascending
    among equals; id -1 with -inf past the last token that has a probability, for rows that are not OK, and where the
    distribution reported does not exist ("none", or NaN above).
    """

    ids: torch.Tensor
    logprobs: torch.Tensor
    status: torch.Tensor
    top_ids: torch.Tensor
    top_logprobs: torch.Tensor
