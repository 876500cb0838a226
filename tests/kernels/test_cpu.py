from __future__ import annotations

import math
import os
import subprocess
import sys

import pytest
import torch
from guided_kernels import cpu, reference
from guided_kernels.edits import Edits
from guided_kernels.params import SampleParams
from guided_kernels.rows import MAX_IDS, Rows
from guided_kernels.sampled import NOTHING_ALLOWED, OK
from guided_testing.kernel_cases import (
    MASK_KINDS,
    assert_agrees,
    bits_rows,
    ids_rows,
    mask,
    mixed_rows,
    packed,
    params,
)

DTYPES = [torch.float32, torch.bfloat16, torch.float16]
FILTERS = {
    "none": params(64, [0.0, 0.7, 1.0, 1.3]),
    "top_k": params(64, [1.0, 0.6], top_k=[1, 2, 7, 40, 2000], seed=1),
    "top_p": params(64, [1.0, 1.4], top_p=[0.05, 0.5, 0.9, 0.999, 0.0], seed=2),
    "min_p": params(64, [1.0, 2.0], min_p=[0.001, 0.1, 0.7, 1.0, 3.0], seed=3),
    "all": params(64, [0.8, 1.2, 0.0], top_k=[3, 50, 900], top_p=[0.3, 0.95], min_p=[0.0, 0.02], seed=4),
    "extreme": params(64, [1e-30, 1e-4, 1e4, 1e30, math.inf, math.nan, -1.0], top_k=[0, -5], top_p=[math.nan, 1.0], seed=5),
}  # fmt: skip


def first(given: SampleParams, num_rows: int) -> SampleParams:
    return SampleParams(*(column[:num_rows] for column in vars(given).values()))


def some_masks(vocab: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.stack([mask(kind, vocab, generator) for kind in MASK_KINDS])


@pytest.mark.parametrize("filters", FILTERS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("vocab", [1, 31, 32, 97, 1024, 4127])
def test_ids_and_status_are_the_oracles(vocab: int, dtype: torch.dtype, filters: str) -> None:
    rows = mixed_rows(some_masks(vocab, vocab), forced=vocab // 2)
    num_rows = len(rows.kind)
    logits = (3 * torch.randn(num_rows, vocab, generator=torch.Generator().manual_seed(1))).to(dtype)
    logits[:, vocab // 2] = logits[:, vocab // 3]
    given = first(FILTERS[filters], num_rows)
    assert assert_agrees(cpu.sample(logits, rows, given), logits, rows, given, None) >= num_rows - 1


@pytest.mark.parametrize("vocab", [49_152, 131_072, 262_145])
def test_ids_are_the_oracles_on_large_vocabularies(vocab: int) -> None:
    rows = mixed_rows(some_masks(vocab, 3), forced=1)
    num_rows = len(rows.kind)
    logits = 3 * torch.randn(num_rows, vocab, generator=torch.Generator().manual_seed(2))
    for filters in ("none", "all", "top_p"):
        given = first(FILTERS[filters], num_rows)
        assert assert_agrees(cpu.sample(logits, rows, given), logits, rows, given, None) >= num_rows - 2


@pytest.mark.parametrize("words", [1, 30, 31, 40])
def test_a_mask_narrower_than_the_logits_allows_nothing_past_it_and_a_wider_one_is_cut(words: int) -> None:
    vocab = 979
    rows = bits_rows(torch.ones(2, vocab, dtype=torch.bool), words)
    rows.bits.fill_(-1)
    logits = torch.arange(2.0 * vocab).reshape(2, vocab) / 100
    assert cpu.sample(logits, rows, params(2, 0.0)).ids.tolist() == [min(vocab, words * 32) - 1] * 2


@pytest.mark.parametrize("make", ["padded", "transposed", "every other", "expanded", "sliced"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_any_strides(make: str, dtype: torch.dtype) -> None:
    store = torch.randn(300, 310, generator=torch.Generator().manual_seed(0)).to(dtype)
    logits = {
        "padded": store[:6, :300],
        "transposed": store[:300, :6].T,
        "every other": store[:6, :300:2],
        "expanded": store[0, :300].expand(6, 300),
        "sliced": store[4:100:16, 7:307],
    }[make]
    rows, given = Rows.unconstrained(6), params(6, [1.0, 0.0])
    assert assert_agrees(cpu.sample(logits, rows, given), logits, rows, given, None) == 6


@pytest.mark.parametrize("logprobs", ["raw", "constrained", "none"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("top", [0, 1, 5, 97])
def test_logprobs_and_their_alternatives_are_the_oracles(dtype: torch.dtype, logprobs: str, top: int) -> None:
    vocab = 3001
    rows = mixed_rows(some_masks(vocab, 9), forced=17)
    num_rows = len(rows.kind)
    logits = (3 * torch.randn(num_rows, vocab, generator=torch.Generator().manual_seed(4))).to(dtype)
    logits[0, 5] = -math.inf
    edits = Edits(torch.arange(num_rows), torch.full((num_rows,), 17), torch.full((num_rows,), 2.0))
    given = params(num_rows, [0.0, 0.9])
    got = cpu.sample(logits, rows, given, top, edits, logprobs)  # type: ignore[arg-type]
    want = reference.sample(logits, rows, given, top, edits, logprobs)  # type: ignore[arg-type]
    assert torch.equal(got.ids, want.ids)
    torch.testing.assert_close(got.logprobs, want.logprobs, rtol=2e-6, atol=2e-6, equal_nan=True)
    torch.testing.assert_close(got.top_logprobs, want.top_logprobs, rtol=2e-6, atol=2e-6, equal_nan=True)
    assert torch.equal(got.top_ids, want.top_ids)


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("top_k", [0, 2])
@pytest.mark.parametrize(
    "row",
    [
        [NAN, 1.0, 2.0],
        [-NAN, 1.0, 2.0],
        [1.0, INF, 2.0],
        [-INF, -INF, -INF],
        [-INF, 1.0, -INF],
        [-0.0, 0.0, -0.0],
        [3e38, -3e38, 3e38],
        [1e-45, 0.0, -1e-45],
    ],
)
def test_odd_values_end_as_in_the_oracle(row: list[float], top_k: int, temperature: float) -> None:
    logits = torch.tensor([row]).repeat(3, 20)
    rows = mixed_rows(torch.tensor([[True, True, True] * 20]), forced=1)
    given = params(4, temperature, top_k=top_k)
    logits = torch.cat((logits, logits[:1]))
    assert_agrees(cpu.sample(logits, rows, given), logits, rows, given, None)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("value", [NAN, -NAN, INF, -INF, 9.0, -0.0])
@pytest.mark.parametrize("at", [0, 31, 1000, 1024, 2047, 3000, 3102])
def test_greedy_sees_an_odd_value_wherever_it_lies_in_a_long_row(at: int, value: float, dtype: torch.dtype) -> None:
    """Whole tiles of 1,024 logits are read by other code than the rest of a row."""
    vocab = 3103
    logits = torch.randn(1, vocab, generator=torch.Generator().manual_seed(at)).to(dtype).clamp(-4, 4)
    logits[0, at] = value
    logits[0, 3101] = 9.0
    without = torch.ones(1, vocab, dtype=torch.bool)
    without[0, at] = False
    logits = logits.repeat(3, 1)
    table = bits_rows(torch.cat((without, ~without | without, without)))
    rows = Rows(torch.tensor([1, 1, 0], dtype=torch.int32), table.index, table.bits, table.ids, table.num_ids)
    given = params(3, 0.0)
    assert assert_agrees(cpu.sample(logits, rows, given), logits, rows, given, None) >= 1
    assert cpu.sample(logits[:1], bits_rows(without), params(1, 0.0)).ids.item() == 3101


def test_edits_reach_every_kind_of_row_and_add_up() -> None:
    vocab, generator = 2500, torch.Generator().manual_seed(8)
    rows = mixed_rows(some_masks(vocab, 5), forced=3)
    num_rows = len(rows.kind)
    logits = torch.randn(num_rows, vocab, generator=generator)
    shape = (4000,)
    edits = Edits(
        torch.randint(num_rows, shape, generator=generator),
        torch.randint(vocab, shape, generator=generator),
        4 * torch.randn(shape, generator=generator),
    )
    for filters in ("none", "all"):
        given = first(FILTERS[filters], num_rows)
        edited = cpu.sample(logits, rows, given, edits=edits)
        assert assert_agrees(edited, logits, rows, given, edits) >= num_rows - 1
        assert not torch.equal(edited.ids, cpu.sample(logits, rows, given).ids)


def test_a_row_draws_the_same_token_alone_and_anywhere_in_a_batch() -> None:
    vocab, num_rows = 5000, 256
    generator = torch.Generator().manual_seed(6)
    logits = torch.randn(num_rows, vocab, generator=generator)
    given = params(num_rows, [0.7, 1.0, 1.3], top_p=[1.0, 0.9], seed=99)
    rows = bits_rows(torch.rand(num_rows, vocab, generator=generator) < 0.5)
    together = cpu.sample(logits, rows, given).ids
    order = torch.randperm(num_rows, generator=generator)

    def of(taken: torch.Tensor) -> torch.Tensor:
        table = Rows(rows.kind[taken], rows.index[taken], rows.bits, rows.ids, rows.num_ids)
        return cpu.sample(logits[taken], table, SampleParams(*(c[taken] for c in vars(given).values()))).ids

    assert torch.equal(of(order), together[order])
    for row in (0, 100, 255):
        assert of(torch.tensor([row])).item() == together[row]


def test_the_same_mask_as_bits_and_as_ids_draws_the_same_token() -> None:
    allowed = torch.rand(1, 4000, generator=torch.Generator().manual_seed(7)) < 0.2
    logits = torch.randn(1, 4000)
    for step in range(50):
        given = params(step + 1, 1.1, seed=5)
        one = SampleParams(*(column[step:] for column in vars(given).values()))
        as_ids = cpu.sample(logits, ids_rows([allowed[0].nonzero()[:, 0].tolist()]), one).ids
        assert as_ids.item() == cpu.sample(logits, bits_rows(allowed), one).ids.item()


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("listed", {}),
        ("listed", {"top_k": 20}),
        ("bits", {}),
        ("bits", {"top_p": 0.8}),
        ("bits", {"min_p": 0.05, "temperature": 1.5}),
        ("free", {"top_k": 300, "top_p": 0.9}),
    ],
)
def test_draws_follow_the_exact_law_and_never_leave_the_mask(kind: str, given: dict[str, float]) -> None:
    """200,000 draws a case, 1.2 million in all."""
    vocab, num_draws, chunk = 3000, 200_000, 20_000
    generator = torch.Generator().manual_seed(10)
    logits = 2 * torch.randn(1, vocab, generator=generator)
    share = {"listed": 0.05, "bits": 0.6, "free": 1.0}[kind]
    allowed = torch.rand(1, vocab, generator=generator) < share
    table = bits_rows(allowed) if kind != "free" else Rows.unconstrained(1)
    rows = Rows(table.kind.expand(chunk), table.index.expand(chunk), table.bits, table.ids, table.num_ids)
    law = params(chunk, **given)  # type: ignore[arg-type]
    counts = torch.zeros(vocab, dtype=torch.float64)
    for start in range(0, num_draws, chunk):
        law = SampleParams(**{**vars(law), "step": torch.arange(start, start + chunk)})
        drawn = cpu.sample(logits.expand(chunk, vocab), rows, law, logprobs="none")
        assert (drawn.status == OK).all()
        counts += torch.bincount(drawn.ids, minlength=vocab)
    one = SampleParams(*(column[:1] for column in vars(law).values()))
    expected = num_draws * reference.probabilities(logits.double().masked_fill(~allowed, -INF), one)[0]
    assert counts[expected == 0].sum() == 0
    common = expected > 10
    seen = torch.cat((counts[common], counts[~common].sum()[None]))
    due = torch.cat((expected[common], expected[~common].sum()[None])).clamp(min=1e-9)
    chi_square, freedom = ((seen - due) ** 2 / due).sum(), len(due) - 1
    assert abs(chi_square - freedom) < 5 * math.sqrt(2 * freedom) + 1


_LOCKED = """
import ctypes, mmap, sys
import torch
from guided_kernels import cpu
from guided_kernels.rows import Rows
from guided_testing.kernel_cases import bits_rows, params

pages, first, last = 64, *map(int, sys.argv[1:3])
page, vocab = mmap.PAGESIZE, 64 * mmap.PAGESIZE // 4
memory = mmap.mmap(-1, pages * page)
logits = torch.frombuffer(memory, dtype=torch.float32)[None]
start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
protect = ctypes.CDLL(None, use_errno=True).mprotect
for at in range(pages):
    if not first <= at < last:
        assert protect(ctypes.c_void_p(start + at * page), ctypes.c_size_t(page), 0) == 0
token = torch.arange(vocab)[None]
rows = bits_rows((token >= first * page // 4) & (token < last * page // 4) & (token % int(sys.argv[3]) == 0))
for temperature in (0.0, 1.0):
    assert cpu.sample(logits, rows, params(1, temperature), logprobs="none").status.item() == 0
if len(sys.argv) > 4:
    cpu.sample(logits, Rows.unconstrained(1), params(1))
"""


@pytest.mark.parametrize(("first", "last", "every"), [(5, 6, 16), (5, 9, 1), (63, 64, 1000)])
def test_logits_of_masked_words_are_never_read(first: int, last: int, every: int) -> None:
    """All other pages of the logits are locked, so that a read ends the process; the control does read them."""
    command = [sys.executable, "-c", _LOCKED, str(first), str(last), str(every)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run(command, env=env, check=False).returncode == 0
    assert subprocess.run([*command, "read the rest"], env=env, check=False, stderr=subprocess.DEVNULL).returncode < 0


@pytest.mark.parametrize("size", [0, 1, MAX_IDS])
def test_id_lists_of_any_length(size: int) -> None:
    rows = ids_rows([list(range(0, 3 * size, 3))])
    got = cpu.sample(torch.arange(4000.0)[None], rows, params(1, 0.0))
    assert got.ids.tolist() == [3 * size - 3 if size else -1]
    assert got.status.tolist() == [OK if size else NOTHING_ALLOWED]


def test_packed_is_little_endian_by_word() -> None:
    assert packed(torch.arange(40)[None] == 33).tolist() == [[0, 2]]
