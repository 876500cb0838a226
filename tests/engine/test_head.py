"""Only the logits that a row could draw are computed, and those are the whole head's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from guided_engine.head import Head
from guided_grammar.batch import StepMasks
from guided_testing.engine_fakes import Bench

VOCAB, WIDTH = 258, 8
IDS = 'root ::= "a" | "b" | "c"'


def masks() -> StepMasks:
    """Rows: unconstrained, bits, ids, forced."""
    ids = np.zeros((1, 1024), np.int32)
    ids[0, :3] = (5, 7, 200)
    words = np.full((1, 9), -1, np.int32)
    kind, index = np.arange(4, dtype=np.int32), np.array([0, 0, 0, 9], np.int32)
    return StepMasks(kind, index, words, ids, np.array([3], np.int32))


def choices(logprobs: int | None) -> list[Any]:
    request, _ = Bench(str).request("x", n=4, logprobs=logprobs)
    return request.choices


@pytest.mark.parametrize("bias", [True, False])
def test_sparse_rows_get_their_ids_and_nothing_else(bias: bool) -> None:
    linear, hidden = torch.nn.Linear(WIDTH, VOCAB, bias=bias), torch.randn(4, WIDTH)
    with torch.no_grad():
        whole, logits = linear(hidden), Head(linear)(hidden, masks(), choices(None))
    torch.testing.assert_close(logits[:2], whole[:2])
    computed = torch.isfinite(logits[2]).nonzero().flatten().tolist()
    assert computed == [5, 7, 200]
    torch.testing.assert_close(logits[2, computed], whole[2, computed])
    assert torch.isneginf(logits[3]).all()


@pytest.mark.parametrize(("given", "logprobs"), [(None, None), (masks(), 0)])
def test_without_masks_or_with_log_probs_every_logit_is_computed(given: StepMasks | None, logprobs: int | None) -> None:
    linear, hidden = torch.nn.Linear(WIDTH, VOCAB), torch.randn(4, WIDTH)
    with torch.no_grad():
        torch.testing.assert_close(Head(linear)(hidden, given, choices(logprobs)), linear(hidden))
