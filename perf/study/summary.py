"""Figures out of a run's results: rates and quantiles over requests, never over anything else."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from study.ladder import Outcome
from study.records import Record, Results

_PRICE_PER_MILLION = 0.65
_MAX_ATTEMPTS = 3


@dataclass(frozen=True)
class Row:
    """One arm at one level. Rates are shares of what their names say; times in milliseconds.

    validity: of complete answers, those that parse and validate. semantic: of complete answers, those that also keep
    the rules. truncation, zero_token: of answers. transport, refused: of all requests. None: no denominator.
    usd_per_usable: tokens of every request at the study's price, over the answers that are right.
    """

    experiment: str
    arm: str
    level: int
    requests: int
    distinct: int
    validity: float | None
    semantic: float | None
    truncation: float | None
    zero_token: float | None
    transport: float
    refused: float
    ttft_p50_ms: float
    per_token_p50_ms: float
    e2e_p50_ms: float
    e2e_p99_ms: float
    tokens_mean: float
    usd_per_usable: float | None


def row(experiment: str, arm: str, level: int, records: Sequence[Record]) -> Row:
    answered = [r for r in records if r.answered]
    complete = [r for r in answered if r.complete]
    valid = [r for r in complete if r.outcome in (Outcome.OK, Outcome.SEMANTIC)]
    usable = [r for r in complete if r.outcome is Outcome.OK]
    tokens = sum(r.prompt_tokens + r.completion_tokens for r in records)
    return Row(
        experiment=experiment,
        arm=arm,
        level=level,
        requests=len(records),
        distinct=len({r.text for r in answered}),
        validity=_share(len(valid), len(complete)),
        semantic=_share(len(usable), len(complete)),
        truncation=_share(len(answered) - len(complete), len(answered)),
        zero_token=_share(sum(r.completion_tokens == 0 for r in answered), len(answered)),
        transport=_share(sum(r.outcome is Outcome.TRANSPORT for r in records), len(records)) or 0.0,
        refused=_share(sum(r.outcome is Outcome.REFUSED for r in records), len(records)) or 0.0,
        ttft_p50_ms=quantile((r.ttft_s * 1000 for r in answered if r.ttft_s), 0.5),
        per_token_p50_ms=quantile((r.per_token_s * 1000 for r in answered if r.completion_tokens > 1), 0.5),
        e2e_p50_ms=quantile((r.e2e_s * 1000 for r in answered), 0.5),
        e2e_p99_ms=quantile((r.e2e_s * 1000 for r in answered), 0.99),
        tokens_mean=round(statistics.fmean([r.completion_tokens for r in answered] or [0]), 1),
        usd_per_usable=None if not usable else round(tokens * _PRICE_PER_MILLION / 1e6 / len(usable), 8),
    )


def rows(results: Results, experiment: str) -> list[Row]:
    """One per arm and level, in the order in which they ran."""
    keys = dict.fromkeys((r.arm, r.level) for r in results.of(experiment))
    return [row(experiment, arm, level, results.of(experiment, arm=arm, level=level)) for arm, level in keys]


def attempts(failure: float) -> float:
    """Expected attempts for one usable answer when each fails on its own, at most three (D149)."""
    return sum(failure**k for k in range(_MAX_ATTEMPTS))


def quantile(values: Iterable[float], share: float) -> float:
    """Nearest rank, 0 for nothing."""
    ordered = sorted(values)
    return round(ordered[min(int(share * len(ordered)), len(ordered) - 1)], 2) if ordered else 0.0


def total(facts: Iterable[dict[str, Any]], name: str, where: Callable[[dict[str, Any]], bool]) -> float:
    return sum(float(f.get(name, 0)) for f in facts if where(f))


def peak(facts: Iterable[dict[str, Any]], name: str, where: Callable[[dict[str, Any]], bool]) -> float:
    return max((float(f.get(name, 0)) for f in facts if where(f)), default=0.0)


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None
