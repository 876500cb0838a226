from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from guided_kernels import reference
from guided_kernels.edits import Edits, Penalties, Seen, penalty_edits
from guided_kernels.params import SampleParams
from guided_kernels.rows import BITS, FORCED, IDS, UNCONSTRAINED, Rows
from guided_kernels.sampled import NOT_A_NUMBER, NOTHING_ALLOWED, OK
from guided_testing.kernel_cases import bits_rows, ids_rows, params

INF, NAN = math.inf, math.nan
LOG = [math.log(p) for p in (0.5, 0.1, 0.25, 0.1, 0.05)]


def one_row(kind: int, index: int) -> Rows:
    """Bits 0 and 34 allowed by BITS row 0, ids 2 and 40 by IDS row 0."""
    ids = ids_rows([[2, 40]])
    bits = torch.tensor([[1, 4]], dtype=torch.int32)
    return replace(ids, kind=torch.tensor([kind]).int(), index=torch.tensor([index]).int(), bits=bits)


@pytest.mark.parametrize(
    ("kind", "index", "vocab", "allowed"),
    [
        (UNCONSTRAINED, 0, 3, [0, 1, 2]),
        (BITS, 0, 40, [0, 34]),
        (BITS, 0, 34, [0]),
        (BITS, 0, 200, [0, 34]),
        (IDS, 0, 50, [2, 40]),
        (IDS, 0, 40, [2]),
        (FORCED, 7, 10, [7]),
        (FORCED, 10, 10, []),
        (FORCED, -1, 10, []),
    ],
)
def test_a_row_allows_what_its_kind_says(kind: int, index: int, vocab: int, allowed: list[int]) -> None:
    assert reference.allowed_tokens(one_row(kind, index), vocab)[0].nonzero()[:, 0].tolist() == allowed


@pytest.mark.parametrize(
    ("given", "law"),
    [
        ({}, [0.5, 0.1, 0.25, 0.1, 0.05]),
        ({"top_k": 2}, [2 / 3, 0, 1 / 3, 0, 0]),
        ({"top_k": 3}, [0.5 / 0.85, 0.1 / 0.85, 0.25 / 0.85, 0, 0]),
        ({"top_p": 0.74}, [2 / 3, 0, 1 / 3, 0, 0]),
        ({"top_p": 0.76}, [0.5 / 0.85, 0.1 / 0.85, 0.25 / 0.85, 0, 0]),
        ({"top_p": 0.0}, [1, 0, 0, 0, 0]),
        ({"min_p": 0.3}, [2 / 3, 0, 1 / 3, 0, 0]),
        ({"min_p": 1.0}, [1, 0, 0, 0, 0]),
        ({"min_p": 0.3, "top_p": 0.6}, [1, 0, 0, 0, 0]),
        ({"top_k": 2, "top_p": 0.6}, [1, 0, 0, 0, 0]),
        ({"temperature": 0.5}, [v / 0.335 for v in (0.25, 0.01, 0.0625, 0.01, 0.0025)]),
        ({"temperature": 0.5, "top_p": 0.74}, [1, 0, 0, 0, 0]),
        ({"temperature": INF}, [0.2] * 5),
        ({"top_k": -1, "top_p": NAN, "min_p": NAN}, [0.5, 0.1, 0.25, 0.1, 0.05]),
    ],
)
def test_the_law_of_the_draw(given: dict[str, float], law: list[float]) -> None:
    got = reference.probabilities(torch.tensor([LOG], dtype=torch.float64), params(1, **given))  # type: ignore[arg-type]
    tolerance = 1e-4 if given.get("temperature") == INF else 1e-7
    assert got[0].tolist() == pytest.approx(law, abs=tolerance)


@pytest.mark.parametrize(
    ("row", "status", "token"),
    [
        ([1.0, 3.0, 3.0], OK, 1),
        ([-INF, -INF, -INF], NOTHING_ALLOWED, -1),
        ([-INF, 0.0, -INF], OK, 1),
        ([1.0, NAN, 0.0], NOT_A_NUMBER, -1),
        ([1.0, INF, 0.0], NOT_A_NUMBER, -1),
    ],
)
def test_greedy_takes_the_lowest_of_equals_and_faults_become_a_status(
    row: list[float], status: int, token: int
) -> None:
    got = reference.sample(torch.tensor([row]), Rows.unconstrained(1), SampleParams.greedy(1))
    assert (got.status.tolist(), got.ids.tolist()) == ([status], [token])


def test_a_nan_under_the_mask_is_not_seen() -> None:
    rows = bits_rows(torch.tensor([[True, False, True]]))
    got = reference.sample(torch.tensor([[0.0, NAN, 1.0]]), rows, SampleParams.greedy(1), logprobs="constrained")
    assert got.ids.tolist() == [2] and got.status.tolist() == [OK]
    assert got.logprobs.tolist() == pytest.approx([math.log(math.e / (1 + math.e))])


def test_logprobs_raw_ignore_mask_edits_and_temperature_and_constrained_ones_do_not() -> None:
    rows = bits_rows(torch.tensor([[False, True, True, True, False]]))
    edits = Edits(torch.tensor([0]), torch.tensor([1]), torch.tensor([5.0]))
    given = params(1, temperature=0.0)
    raw = reference.sample(torch.tensor([LOG]), rows, given, 2, edits)
    assert (raw.ids.tolist(), raw.top_ids.tolist()) == ([1], [[0, 2]])
    assert raw.logprobs.tolist() == pytest.approx([math.log(0.1)])
    assert raw.top_logprobs[0].tolist() == pytest.approx([math.log(0.5), math.log(0.25)])
    constrained = reference.sample(torch.tensor([LOG]), rows, given, 4, edits, "constrained")
    edited = [0.1 * math.exp(5), 0.25, 0.1]
    assert constrained.top_ids.tolist() == [[1, 2, 3, -1]]
    assert constrained.top_logprobs[0].tolist() == pytest.approx([math.log(e / sum(edited)) for e in edited] + [-INF])


def test_a_forced_token_has_constrained_logprob_0_and_its_raw_logprob() -> None:
    rows = one_row(FORCED, 1)
    assert reference.sample(torch.tensor([LOG]), rows, params(1)).logprobs.tolist() == pytest.approx([math.log(0.1)])
    assert reference.sample(torch.tensor([LOG]), rows, params(1), logprobs="constrained").logprobs.tolist() == [0.0]


def test_an_edit_never_allows_a_masked_token_and_edits_of_one_logit_add_up() -> None:
    rows = bits_rows(torch.tensor([[True, True, False]]))
    edits = Edits(torch.tensor([0, 0, 0]), torch.tensor([2, 1, 1]), torch.tensor([100.0, 0.75, 0.75]))
    assert reference.sample(torch.tensor([[1.0, 0.0, 0.0]]), rows, SampleParams.greedy(1), 0, edits).ids.item() == 1


def test_penalties_follow_the_published_formulas() -> None:
    logits = torch.tensor([[2.0, -2.0, 1.0, -INF]])
    seen = Seen(torch.zeros(4, dtype=torch.int64), torch.arange(4), torch.tensor([0, 3, 1, 2], dtype=torch.int32))
    penalties = Penalties(torch.tensor([2.0]), torch.tensor([0.5]), torch.tensor([0.25]))
    edits = penalty_edits(logits, seen, penalties)
    assert reference.edited_logits(logits, edits)[0].tolist() == [1.0, -4 - 1.5 - 0.25, 0.5 - 0.5 - 0.25, -INF]


def test_the_draw_follows_the_law_and_depends_on_seed_and_step_only() -> None:
    num = 20_000
    given = params(num, top_k=3, seed=11)
    ids = reference.sample(torch.tensor([LOG]).repeat(num, 1), Rows.unconstrained(num), given).ids
    counts = torch.bincount(ids, minlength=5).double()
    expected = num * torch.tensor([0.5, 0.1, 0.25, 0, 0], dtype=torch.float64) / 0.85
    assert counts[3:].sum() == 0
    assert (((counts - expected) ** 2)[:3] / expected[:3]).sum() < 20
    picked = torch.tensor([77, 5, 19_999])
    subset = SampleParams(*(getattr(given, name)[picked] for name in vars(given)))
    alone = reference.sample(torch.tensor([LOG]).repeat(3, 1), Rows.unconstrained(3), subset)
    assert torch.equal(alone.ids, ids[picked])
