"""Steps in a row on one thread, or at once on two: nothing of one may show in another."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import torch
from guided_kernels import reference
from guided_kernels.edits import Edits
from guided_kernels.params import SampleParams
from guided_kernels.rows import Rows
from guided_kernels.sample import sample
from guided_kernels.sampled import LogprobsOf
from guided_testing.kernel_cases import bits_rows, params

VOCAB = 2100
REPORTS: tuple[LogprobsOf, ...] = ("raw", "none", "constrained")


def tables() -> tuple[torch.Tensor, Rows, SampleParams]:
    generator = torch.Generator().manual_seed(0)
    rows = bits_rows(torch.rand(2, VOCAB, generator=generator) < 0.3)
    return torch.randn(2, VOCAB, generator=generator), rows, params(2, 1.0, seed=3)


def interleaved(column: torch.Tensor) -> torch.Tensor:
    """The same values, not contiguous."""
    return torch.stack((column, column), -1)[..., 0]


def agrees(logits: torch.Tensor, rows: Rows, law: SampleParams) -> bool:
    return torch.equal(sample(logits, rows, law).ids, reference.sample(logits, rows, law).ids)


@pytest.mark.parametrize("lay", [torch.clone, interleaved])
def test_what_is_written_to_the_tables_between_steps_is_seen(lay: Callable[[torch.Tensor], torch.Tensor]) -> None:
    logits, rows, law = tables()
    rows, law = replace(rows, bits=lay(rows.bits)), replace(law, step=lay(law.step))
    seen = set()
    for step in range(12):
        law.step.fill_(step)
        rows.bits[:, step::7] = 1 << step
        assert agrees(logits, rows, law)
        seen.add(tuple(sample(logits, rows, law).ids.tolist()))
    assert len(seen) > 6


def test_a_table_that_moved_is_read_where_it_is() -> None:
    logits, rows, law = tables()
    assert agrees(logits, rows, law)
    rows.bits.data = ~rows.bits
    law.step.data = torch.full((2,), 9)
    assert agrees(logits, rows, law)


def test_the_same_tables_are_refused_for_logits_that_they_do_not_fit() -> None:
    logits, rows, law = tables()
    sample(logits, rows, law)
    for wrong in (logits[:1], logits.to("meta")):
        with pytest.raises(ValueError, match=r"rows.kind must be"):
            sample(wrong, rows, law)
    with pytest.raises(ValueError, match=r"params.top_k must be"):
        sample(logits, rows, replace(law, top_k=law.step))


def test_logits_logprobs_and_edits_of_the_last_step_do_not_stay() -> None:
    logits, rows, law = tables()
    one = torch.ones(1, dtype=torch.int64)
    for given, top in ((logits, 0), (logits.half(), 2), (torch.randn(2, 9000), 0), (logits[:, ::2], 1), (logits, 3)):
        for edits in (None, Edits(one, 7 * one, 50.0 * one), None):
            for logprobs in REPORTS:
                got, want = (f(given, rows, law, top, edits, logprobs) for f in (sample, reference.sample))
                assert torch.equal(got.ids, want.ids)
                torch.testing.assert_close(got.logprobs, want.logprobs, rtol=2e-6, atol=2e-6, equal_nan=True)
                assert torch.equal(got.top_ids, want.top_ids)


def test_results_of_earlier_steps_stay_as_they_were() -> None:
    logits, rows, law = tables()
    first = sample(logits, rows, law)
    before = first.ids.clone()
    sample(-logits, rows, law)
    assert torch.equal(first.ids, before)


def test_threads_that_share_tables_do_not_share_a_scratch() -> None:
    logits, rows, law = tables()
    shares = [logits * sign for sign in (1, -1)]
    want = [reference.sample(share, rows, law).ids for share in shares]

    def draws(at: int) -> bool:
        return all(torch.equal(sample(shares[at], rows, law, logprobs="none").ids, want[at]) for _ in range(300))

    with ThreadPoolExecutor(2) as pool:
        assert all(pool.map(draws, (0, 1)))
