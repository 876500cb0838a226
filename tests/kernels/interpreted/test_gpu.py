from __future__ import annotations

import math

import pytest
import torch
from guided_kernels import gpu, reference
from guided_kernels.edits import Edits
from guided_kernels.params import SampleParams
from guided_kernels.plan import Plan
from guided_kernels.rows import Rows
from guided_testing.kernel_cases import MASK_KINDS, assert_agrees, bits_rows, ids_rows, mask, mixed_rows, params

NAN, INF = math.nan, math.inf
UNFILTERED = Plan(filters=False)


def masked(vocab: int, kinds: tuple[str, ...], seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (
        torch.stack([mask(kind, vocab, generator) for kind in kinds])
        if kinds
        else torch.zeros(0, vocab, dtype=torch.bool)
    )


def noise(num_rows: int, vocab: int, dtype: torch.dtype = torch.float32, seed: int = 1) -> torch.Tensor:
    logits = (3 * torch.randn(num_rows, vocab, generator=torch.Generator().manual_seed(seed))).to(dtype)
    logits[:, vocab // 2] = logits[:, vocab // 3]
    return logits


@pytest.mark.parametrize(
    ("vocab", "dtype", "kinds", "given"),
    [
        (32, torch.float32, MASK_KINDS, {"temperature": [0.0, 1.0]}),
        (97, torch.bfloat16, MASK_KINDS, {"temperature": [1.3, 0.0]}),
        (2048, torch.float16, ("dense", "half"), {"temperature": [0.7, 0.0, 1.0]}),
        (4127, torch.float32, ("dense", "sparse", "runs", "none"), {"temperature": [0.7, 1.0, 0.0]}),
        (70_001, torch.float32, ("half",), {"temperature": [1.0, 0.0]}),
        (262_145, torch.bfloat16, (), {"temperature": 1.0}),
        (2080, torch.bfloat16, ("half",), {"top_k": [3, 40]}),
        (4127, torch.float32, ("dense", "sparse"), {"top_k": [1, 300, 9], "temperature": [0.8]}),
        (1000, torch.float32, ("half", "sparse"), {"top_p": [0.9, 0.05, 0.0]}),
        (1000, torch.float16, ("half", "one"), {"min_p": [0.1, 0.5, 3.0]}),
        (2500, torch.bfloat16, ("dense", "sparse"), {"top_k": [50, 9], "top_p": [0.6, 0.95], "min_p": [0.01, 0.0]}),
        (97, torch.float32, ("half", "all"), {"temperature": [1e-30, 1e-4, 1e30, NAN, -1.0], "top_k": -3, "top_p": NAN}),
    ],
)  # fmt: skip
def test_ids_and_status_are_the_oracles(
    vocab: int, dtype: torch.dtype, kinds: tuple[str, ...], given: dict[str, float]
) -> None:
    rows = mixed_rows(masked(vocab, kinds), forced=vocab // 2)
    num_rows = len(rows.kind)
    logits = noise(num_rows, vocab, dtype)
    law = params(num_rows, **given)  # type: ignore[arg-type]
    got = gpu.sample(logits, rows, law, logprobs="none")
    assert assert_agrees(got, logits, rows, law, None) >= num_rows - 1


def test_without_filters_no_cut_is_needed() -> None:
    rows = mixed_rows(masked(97, ("half", "sparse")), forced=1)
    logits, law = noise(len(rows.kind), 97), params(len(rows.kind), 0.9)
    assert_agrees(gpu.sample(logits, rows, law, plan=UNFILTERED), logits, rows, law, None)


@pytest.mark.parametrize("logprobs", ["raw", "constrained", "none"])
def test_a_step_of_one_sort_of_rows_needs_only_its_own_launches(logprobs: str) -> None:
    logits, law = noise(2, 300), params(2, [0.0, 1.0], top_k=5)
    lists, bits = ids_rows([[3, 9, 200], [7]]), bits_rows(masked(300, ("half", "all")))
    for rows, plan in ((lists, Plan(dense=False)), (bits, Plan(listed=False))):
        got = gpu.sample(logits, rows, law, 2, None, logprobs, plan)  # type: ignore[arg-type]
        want = reference.sample(logits, rows, law, 2, None, logprobs)  # type: ignore[arg-type]
        assert torch.equal(got.ids, want.ids) and torch.equal(got.top_ids, want.top_ids)
        torch.testing.assert_close(got.logprobs, want.logprobs, rtol=3e-6, atol=3e-6, equal_nan=True)


@pytest.mark.parametrize("logprobs", ["raw", "constrained", "none"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_logprobs_and_their_alternatives_are_the_oracles(dtype: torch.dtype, logprobs: str) -> None:
    rows = mixed_rows(masked(2500, ("half", "sparse", "none")), forced=17)
    num_rows = len(rows.kind)
    logits = noise(num_rows, 2500, dtype)
    edits = Edits(torch.arange(num_rows), torch.full((num_rows,), 17), torch.full((num_rows,), 2.0))
    law = params(num_rows, [0.0, 0.9])
    got = gpu.sample(logits, rows, law, 4, edits, logprobs)  # type: ignore[arg-type]
    want = reference.sample(logits, rows, law, 4, edits, logprobs)  # type: ignore[arg-type]
    assert torch.equal(got.ids, want.ids)
    torch.testing.assert_close(got.logprobs, want.logprobs, rtol=3e-6, atol=3e-6, equal_nan=True)
    torch.testing.assert_close(got.top_logprobs, want.top_logprobs, rtol=3e-6, atol=3e-6, equal_nan=True)
    assert torch.equal(got.top_ids, want.top_ids)


@pytest.mark.parametrize("words", [1, 30, 31, 40])
def test_a_mask_narrower_than_the_logits_allows_nothing_past_it_and_a_wider_one_is_cut(words: int) -> None:
    rows = bits_rows(torch.ones(1, 979, dtype=torch.bool), words)
    rows.bits.fill_(-1)
    got = gpu.sample(torch.arange(979.0)[None], rows, params(1, 0.0), logprobs="none", plan=UNFILTERED)
    assert got.ids.tolist() == [min(979, words * 32) - 1]


@pytest.mark.parametrize("make", ["padded", "transposed", "expanded"])
def test_any_strides(make: str) -> None:
    store = torch.randn(300, 310, generator=torch.Generator().manual_seed(0))
    logits = {"padded": store[:2, :300], "transposed": store[:300, :2].T, "expanded": store[0].expand(2, 310)}[make]
    rows, law = Rows.unconstrained(2), params(2, [1.0, 0.0])
    got = gpu.sample(logits, rows, law, plan=UNFILTERED)
    assert assert_agrees(got, logits, rows, law, None) == 2


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize(
    "row", [[NAN, 1.0, 2.0], [1.0, INF, 2.0], [-INF, -INF, -INF], [-INF, 1.0, -INF], [-0.0, 0.0, -0.0]]
)
def test_odd_values_end_as_in_the_oracle(row: list[float], temperature: float) -> None:
    rows = mixed_rows(torch.tensor([[True, True, True] * 20]), forced=1)
    logits, law = torch.tensor([row]).repeat(4, 20), params(4, temperature, top_k=2)
    assert_agrees(gpu.sample(logits, rows, law), logits, rows, law, None)


def test_edits_reach_every_kind_of_row_and_those_outside_do_nothing() -> None:
    rows = mixed_rows(masked(500, ("half", "sparse")), forced=3)
    num_rows, generator = len(rows.kind), torch.Generator().manual_seed(2)
    logits, law = noise(num_rows, 500), params(num_rows, 0.9)
    inside = Edits(
        torch.randint(num_rows, (600,), generator=generator),
        torch.randint(500, (600,), generator=generator),
        4 * torch.randn(600, generator=generator),
    )
    outside = Edits(torch.tensor([-1, num_rows, 0, 0]), torch.tensor([0, 0, -1, 500]), torch.full((4,), 50.0))
    got = gpu.sample(logits, rows, law, edits=inside.and_also(outside))
    assert assert_agrees(got, logits, rows, law, inside) >= num_rows - 1


def test_a_row_draws_the_same_token_alone_and_anywhere_in_a_batch() -> None:
    logits = noise(6, 2100)
    law = params(6, 1.2, top_p=[1.0, 0.9], seed=7)
    rows = bits_rows(masked(2100, ("half",) * 6))
    together = gpu.sample(logits, rows, law, logprobs="none").ids
    for taken in (torch.tensor([5, 3, 1, 0, 2, 4]), torch.tensor([4])):
        table = Rows(rows.kind[taken], rows.index[taken], rows.bits, rows.ids, rows.num_ids)
        some = SampleParams(*(column[taken] for column in vars(law).values()))
        assert torch.equal(gpu.sample(logits[taken], table, some, logprobs="none").ids, together[taken])


def test_draws_never_leave_the_mask_and_follow_the_inverse_cdf() -> None:
    allowed = masked(70, ("half",))
    table = bits_rows(allowed)
    rows = Rows(table.kind.expand(60), table.index.expand(60), table.bits, table.ids, table.num_ids)
    logits, law = noise(1, 70).expand(60, 70), params(60, 1.5, seed=3)
    got = gpu.sample(logits, rows, law, logprobs="none", plan=UNFILTERED)
    assert allowed[0, got.ids].all() and len(set(got.ids.tolist())) > 5
    assert assert_agrees(got, logits, rows, law, None) == 60


class Cuts:
    """Runs a step and keeps the cut that the filter kernel left."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.make, self.made = gpu._Tiles.empty, list[gpu._Tiles]()
        monkeypatch.setattr(gpu._Tiles, "empty", self._record)

    def _record(self, *size: int) -> gpu._Tiles:
        self.made.append(self.make(*size))  # type: ignore[arg-type]
        return self.made[-1]

    def of(self, row: torch.Tensor, **given: float) -> tuple[float, int]:
        gpu.sample(row[None], Rows.unconstrained(1), params(1, **given), logprobs="none")  # type: ignore[arg-type]
        return self.made[-1].cut_value.item(), int(self.made[-1].cut_id.item())


ANY_ID = 0x7FFFFFFF


def test_a_cut_among_equals_ends_at_an_id(monkeypatch: pytest.MonkeyPatch) -> None:
    cuts, row = Cuts(monkeypatch), torch.zeros(4000)
    row[[100, 3000]] = 1.0
    equals = [t for t in range(4000) if t not in (100, 3000)]
    assert cuts.of(row, top_k=2202) == (0.0, equals[2199])
    row[:] = 0.5
    assert cuts.of(row, top_p=0.6) == (0.5, 2399)


def test_a_cut_between_values_admits_any_id(monkeypatch: pytest.MonkeyPatch) -> None:
    cuts, row = Cuts(monkeypatch), torch.arange(4000.0) / 100
    value, last = cuts.of(row, top_k=5)
    assert row[3994] < value <= row[3995] and last == ANY_ID


def test_a_row_with_fewer_tokens_than_top_k_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Cuts(monkeypatch).of(torch.arange(40.0), top_k=41) == (-INF, ANY_ID)


def test_top_p_after_top_k_cuts_among_what_top_k_left(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Cuts(monkeypatch).of(torch.zeros(300), top_k=100, top_p=0.5) == (0.0, 49)


def test_id_lists_of_any_length() -> None:
    rows = ids_rows([[], [4], list(range(0, 3072, 3)), [5, 4001]])
    got = gpu.sample(torch.arange(4000.0).repeat(4, 1), rows, params(4, 0.0), logprobs="none", plan=UNFILTERED)
    assert got.ids.tolist() == [-1, 4, 3069, 5] and got.status.tolist() == [1, 0, 0, 0]
