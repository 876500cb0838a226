"""Hidden states to logits, only where a token could be drawn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from guided_grammar.batch import RowKind, StepMasks

from guided_engine.request import Choice

_FEW = 256


class Head:
    """logits[r, v] = hidden[r] . weight[v] + bias[v].

    A forced row needs no logits, and one that allows up to 256 ids needs those alone; what is not computed is -inf.
    Rows whose client asked for log-probs are computed whole: those are of the raw distribution.
    """

    def __init__(self, linear: torch.nn.Linear, multiple: int = 1) -> None:
        """multiple: as in `attention.Step`."""
        self._weight, self._bias, self._multiple = linear.weight, linear.bias, multiple

    def __call__(self, hidden: torch.Tensor, masks: StepMasks | None, choices: Sequence[Choice]) -> torch.Tensor:
        """hidden [rows, width] -> [rows, vocab], on the same device."""
        sparse = _sparse(masks, choices)
        if masks is None or not sparse.any():
            return self._whole(hidden)
        logits = hidden.new_full((len(hidden), len(self._weight)), -torch.inf)
        whole = torch.from_numpy(np.flatnonzero(~sparse)).to(hidden.device)
        if len(whole):
            logits[whole] = self._whole(hidden[whole])
        for row in np.flatnonzero(sparse & (masks.kind == RowKind.IDS)):
            at = masks.index[row]
            ids = torch.from_numpy(masks.ids[at, : masks.num_ids[at]].astype(np.int64)).to(hidden.device)
            bias = None if self._bias is None else self._bias[ids]
            logits[int(row), ids] = F.linear(hidden[int(row)], self._weight[ids], bias)
        return logits

    def _whole(self, hidden: torch.Tensor) -> torch.Tensor:
        if spare := -len(hidden) % self._multiple:
            hidden = torch.cat((hidden, hidden[-1:].expand(spare, -1)))
            return F.linear(hidden, self._weight, self._bias)[:-spare]
        return F.linear(hidden, self._weight, self._bias)


def _sparse(masks: StepMasks | None, choices: Sequence[Choice]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """bool[rows]: few logits or none are enough."""
    sparse = np.zeros(len(choices), np.bool_)
    if masks is None:
        return sparse
    for row, (kind, index) in enumerate(zip(masks.kind, masks.index, strict=True)):
        few = kind == RowKind.FORCED or (kind == RowKind.IDS and masks.num_ids[index] <= _FEW)
        sparse[row] = few and choices[row].request.sampling.logprobs is None
    return sparse
