"""`transformers.generate` in the engine's place: same weights, same prompts, same counts of tokens, same process."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

import torch
from engine_cases import Case, constrained, free
from engine_rig import Rig, Stopwatch
from guided_engine import attention

_LENGTHS = (8, 16, 32, 64)


def against_generate(rig: Rig, rows: int, count: int, rounds: int) -> dict[str, Any]:
    """A fixed batch of free answers of `count` tokens: what `generate` is made for."""
    cases = free(constrained(rows, count)[:rows], [count] * rows)
    pairs = []
    for _ in range(rounds):
        ours = rig.run(cases, rows, jump_forward=False).seconds
        watch = Stopwatch(rig.clock)
        _generate(rig, cases)
        pairs.append((ours, watch()))
    ratios = [theirs / ours for ours, theirs in pairs]
    return {
        "batch": rows,
        "tokens_each": count,
        "rounds": rounds,
        "ratio": round(statistics.median(ratios), 3),
        "low": round(min(ratios), 3),
        "high": round(max(ratios), 3),
        "engine_seconds": round(pairs[-1][0], 3),
        "generate_seconds": round(pairs[-1][1], 3),
    }


def against_generate_staggered(rig: Rig, rows: int, count: int) -> dict[str, Any]:
    """`count` free answers of 8 to 64 tokens that arrive one by one, 2 * sqrt(rows) times as fast as the engine
    serves them one by one: somewhat faster than it can serve at all.

    `generate` takes everyone who waits, up to `rows`, and the next ones when that batch is through. ratio: of tokens
    that were asked for per second, from the first arrival to the last token.
    """
    lengths = [_LENGTHS[i % len(_LENGTHS)] for i in range(count)]
    cases = free(constrained(count, 1)[:count], lengths)
    alone = rig.run(cases[: len(_LENGTHS)], 1, jump_forward=False).seconds / len(_LENGTHS)
    due = [i * alone / (2 * rows**0.5) for i in range(count)]
    ours = rig.run(cases, rows, jump_forward=False, arrivals=due)
    seconds, latencies = _generate_in_turns(rig, cases, due, rows)
    return {
        "batch": rows,
        "requests": count,
        "apart_seconds": round(due[1], 4),
        "ratio": round(seconds / ours.seconds, 3),
        "engine_seconds": round(ours.seconds, 3),
        "generate_seconds": round(seconds, 3),
        "latency_ratio": round(statistics.mean(latencies) / statistics.mean(ours.latencies), 3),
        "engine_mean_latency": round(statistics.mean(ours.latencies), 3),
        "generate_mean_latency": round(statistics.mean(latencies), 3),
    }


def _generate_in_turns(rig: Rig, cases: Sequence[Case], due: Sequence[float], rows: int) -> tuple[float, list[float]]:
    """Seconds in all, and from arrival to the end of each request's batch."""
    latencies: list[float] = []
    watch = Stopwatch(rig.clock)
    while len(latencies) < len(cases):
        first = len(latencies)
        watch.skip_to(due[first])
        batch = [i for i in range(first, min(first + rows, len(cases))) if due[i] <= watch()]
        _generate(rig, [cases[i] for i in batch])
        latencies += [watch() - due[i] for i in batch]
    return watch(), latencies


def _generate(rig: Rig, cases: Sequence[Case]) -> None:
    """All cases in one batch, padded on the left, to the longest answer asked for."""
    ids = [rig.loaded.tokenizer.encode(case.prompt) for case in cases]
    width, count = max(map(len, ids)), max(case.max_tokens for case in cases)
    device = rig.loaded.device
    tokens = torch.tensor([[0] * (width - len(i)) + i for i in ids], device=device)
    seen = torch.tensor([[0] * (width - len(i)) + [1] * len(i) for i in ids], device=device)
    rig.loaded.model.set_attn_implementation("sdpa")
    try:
        rig.loaded.model.generate(
            tokens,
            attention_mask=seen,
            max_new_tokens=count,
            min_new_tokens=count,
            do_sample=False,
            pad_token_id=0,
        )
    finally:
        rig.loaded.model.set_attn_implementation(attention.NAME)
