from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from guided_kernels.edits import Edits
from guided_kernels.params import SampleParams
from guided_kernels.rows import Rows
from guided_kernels.sample import sample

ROWS, GREEDY = Rows.unconstrained(2), SampleParams.greedy(2)
LOGITS = torch.zeros(2, 8)


@pytest.mark.parametrize(
    ("logits", "rows", "params", "message"),
    [
        (LOGITS[0], ROWS, GREEDY, r"logits must be \[rows, vocab\].*float32\[8\]"),
        (LOGITS.double(), ROWS, GREEDY, "got torch.float64"),
        (LOGITS[:, :0], ROWS, GREEDY, r"got torch.float32\[2, 0\]"),
        (LOGITS[:1], ROWS, GREEDY, r"rows.kind must be torch.int32\[1\].*got torch.int32\[2\]"),
        (LOGITS, replace(ROWS, index=ROWS.index.long()), GREEDY, "rows.index must be torch.int32.*got torch.int64"),
        (LOGITS, replace(ROWS, bits=ROWS.index), GREEDY, r"rows.bits must be torch.int32\[b, words\]"),
        (LOGITS, replace(ROWS, ids=ROWS.ids[:, :64]), GREEDY, r"rows.ids must be torch.int32\[0, 1024\]"),
        (LOGITS, replace(ROWS, num_ids=ROWS.kind), GREEDY, "rows.num_ids must be"),
        (LOGITS, ROWS, replace(GREEDY, top_p=GREEDY.top_p.double()), "params.top_p must be torch.float32"),
        (LOGITS, ROWS, replace(GREEDY, step=GREEDY.step.int()), "params.step must be torch.int64"),
        (LOGITS.to("meta"), ROWS, GREEDY, "on meta, got torch.int32.* on cpu"),
    ],
)
def test_a_wrong_tensor_is_named_with_what_it_must_be_and_what_it_is(
    logits: torch.Tensor, rows: Rows, params: SampleParams, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        sample(logits, rows, params)


@pytest.mark.parametrize("count", [-1, 9])
def test_top_logprobs_must_fit_the_vocabulary(count: int) -> None:
    with pytest.raises(ValueError, match=f"top_logprobs must lie from 0 to 8, got {count}"):
        sample(LOGITS, ROWS, GREEDY, count)


def test_edits_must_be_of_one_length() -> None:
    one = torch.zeros(1, dtype=torch.int64)
    with pytest.raises(ValueError, match=r"edits.value must be torch.float32\[1\]"):
        sample(LOGITS, ROWS, GREEDY, 0, Edits(one, one, torch.zeros(2)))
