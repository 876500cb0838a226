"""The kernels against the float64 reference, on the device they will run on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from gpu_report import Report
from guided_kernels import gpu, philox, reference
from guided_kernels.params import SampleParams
from guided_kernels.rows import BITS, FORCED, IDS, MAX_IDS, UNCONSTRAINED, Rows
from guided_kernels.sampled import OK, Sampled

FILTERS = {"none": (0, 1.0, 0.0), "top-k": (40, 1.0, 0.0), "top-p": (0, 0.9, 0.0), "all": (300, 0.95, 0.01)}


@dataclass(frozen=True)
class Step:
    """Arguments of one `sample`."""

    logits: torch.Tensor
    rows: Rows
    params: SampleParams


def check(report: Report, device: str) -> None:
    """One verdict per property."""
    dry = device == "cpu"
    vocabularies = (97, 2500) if dry else (32, 97, 4127, 65_537, 131_072, 151_936, 262_145)
    for vocab in vocabularies:
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            for name in ("none", "all") if dry else FILTERS:
                step = _step(vocab, dtype, FILTERS[name], device)
                report.verdict(f"as the reference: {vocab} {dtype} filters={name}", _agrees(step))
    report.verdict("draws follow the exact law and never leave the mask", _follows_the_law(device))
    report.verdict("a row draws the same alone and in a batch", _same_alone(device))
    report.verdict("in-place mask", _applies(device))
    if not dry:
        report.verdict("a CUDA graph replays the eager tokens", _replays())


def packed(allowed: torch.Tensor) -> torch.Tensor:
    """bool[rows, vocab] as int32[rows, words]."""
    short = -allowed.shape[1] % 32
    bits = torch.nn.functional.pad(allowed, (0, short)).reshape(len(allowed), -1, 32).long()
    words = (bits << torch.arange(32, device=allowed.device)).sum(-1)
    return torch.where(words >= 2**31, words - 2**32, words).int()


def params(num_rows: int, filters: tuple[int, float, float], device: str, greedy_every: int = 3) -> SampleParams:
    """Step r for row r; every greedy_every-th row is greedy, the others run at temperature 0.8."""
    step = torch.arange(num_rows, device=device)
    top_k, top_p, min_p = filters
    return SampleParams(
        torch.where(step % greedy_every == greedy_every - 1, 0.0, 0.8).float(),
        torch.full((num_rows,), top_k, dtype=torch.int32, device=device),
        torch.full((num_rows,), top_p, device=device),
        torch.full((num_rows,), min_p, device=device),
        torch.full((num_rows,), 1234, device=device),
        step,
    )


def _step(vocab: int, dtype: torch.dtype, filters: tuple[int, float, float], device: str) -> Step:
    """Dense, half and sparse masks as bits, the sparse ones as ids too, a free row and a forced one."""
    generator = torch.Generator(device).manual_seed(vocab)
    shares = torch.tensor([0.97, 0.97, 0.5, 0.5, 0.002, 0.002, 0.0], device=device)[:, None]
    allowed = torch.rand(7, vocab, generator=generator, device=device) < shares
    ids = torch.zeros(7, MAX_IDS, dtype=torch.int32, device=device)
    num_ids = torch.zeros(7, dtype=torch.int32, device=device)
    for row in (4, 5, 6):
        found = allowed[row].nonzero()[:MAX_IDS, 0]
        ids[row, : len(found)], num_ids[row] = found.int(), len(found)
    kind = torch.tensor([BITS] * 7 + [IDS] * 3 + [UNCONSTRAINED, FORCED], dtype=torch.int32, device=device)
    index = torch.tensor([*range(7), 4, 5, 6, 0, vocab // 2], dtype=torch.int32, device=device)
    logits = (3 * torch.randn(len(kind), vocab, generator=generator, device=device)).to(dtype)
    return Step(logits, Rows(kind, index, packed(allowed), ids, num_ids), params(len(kind), filters, device))


def _agrees(step: Step) -> bool:
    """Same status and log-probs, same id unless the uniform lies within rounding of a step of the running sum."""
    got = gpu.sample(step.logits, step.rows, step.params, 3)
    want = reference.sample(step.logits, step.rows, step.params, 3)
    allowed = reference.allowed_tokens(step.rows, step.logits.shape[1])
    law = reference.probabilities(step.logits.double().masked_fill(~allowed, -torch.inf), step.params)
    uniform = philox.uniform(step.params.seed, step.params.step)[:, None]
    near = (law.cumsum(-1) - uniform).abs().min(-1).values < 5e-6
    same = got.ids == want.ids
    close = torch.isclose(got.logprobs, want.logprobs, rtol=1e-5, atol=1e-5, equal_nan=True) | ~same
    tops = torch.isclose(got.top_logprobs, want.top_logprobs, rtol=1e-5, atol=1e-5, equal_nan=True)
    possible = law.gather(1, got.ids.clamp(min=0)[:, None])[:, 0] > 0
    excused = same | (near & possible)
    return bool((got.status == want.status).all() and excused.all() and close.all() and tops.all())


def _follows_the_law(device: str) -> bool:
    """10**6 draws from half of 3,000 tokens; chi-square of those due more than 10 times."""
    num_draws, chunk, vocab = (40, 40, 100) if device == "cpu" else (1_000_000, 50_000, 3_000)
    generator = torch.Generator(device).manual_seed(1)
    allowed = torch.rand(1, vocab, generator=generator, device=device) < 0.5
    logits = 2 * torch.randn(1, vocab, generator=generator, device=device)
    one = Rows.unconstrained(chunk, device)
    rows = Rows(one.kind + BITS, one.index, packed(allowed), one.ids, one.num_ids)
    law = params(chunk, FILTERS["none"], device, greedy_every=chunk + 1)
    counts = torch.zeros(vocab, device=device, dtype=torch.float64)
    for start in range(0, num_draws, chunk):
        law = SampleParams(**{**vars(law), "step": torch.arange(start, start + chunk, device=device)})
        drawn = gpu.sample(logits.expand(chunk, vocab), rows, law, logprobs="none")
        if not (drawn.status == OK).all():
            return False
        counts += torch.bincount(drawn.ids, minlength=vocab)
    first = SampleParams(*(column[:1] for column in vars(law).values()))
    due = num_draws * reference.probabilities(logits.double().masked_fill(~allowed, -torch.inf), first)[0]
    often = due > 10
    chi_square, freedom = ((counts - due)[often] ** 2 / due[often]).sum(), max(int(often.sum()) - 1, 1)
    return bool(counts[~allowed[0]].sum() == 0 and chi_square < freedom + 5 * (2 * freedom) ** 0.5)


def _same_alone(device: str) -> bool:
    step = _step(2500, torch.float32, FILTERS["all"], device)
    together = gpu.sample(step.logits, step.rows, step.params).ids
    return all(alone.ids.item() == together[row] for row, alone in enumerate(_alone(step)))


def _alone(step: Step) -> Iterator[Sampled]:
    for row in range(len(step.logits)):
        one = slice(row, row + 1)
        table = Rows(step.rows.kind[one], step.rows.index[one], step.rows.bits, step.rows.ids, step.rows.num_ids)
        yield gpu.sample(step.logits[one], table, SampleParams(*(c[one] for c in vars(step.params).values())))


def _applies(device: str) -> bool:
    generator = torch.Generator(device).manual_seed(3)
    for dtype in (torch.float32, torch.bfloat16):
        allowed = torch.rand(5, 4127, generator=generator, device=device) < 0.6
        allowed[1] = False
        logits = torch.randn(6, 4160, generator=generator, device=device).to(dtype)
        want = logits.clone()
        want[1:, :4127].masked_fill_(~allowed, -torch.inf)
        gpu.apply(logits[:, :4127], packed(allowed), torch.arange(1, 6, dtype=torch.int32, device=device))
        if not torch.equal(logits, want):
            return False
    return True


def _replays() -> bool:
    step = _step(131_072, torch.bfloat16, FILTERS["all"], "cuda")
    eager = gpu.sample(step.logits, step.rows, step.params, 3)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = gpu.sample(step.logits, step.rows, step.params, 3)
    graph.replay()
    torch.cuda.synchronize()
    return torch.equal(captured.ids, eager.ids) and torch.equal(captured.top_ids, eager.top_ids)
