"""Verdicts -> the table by group, the reasons of refusals, and what is wrong."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from guided_grammar.conformance.case import Status, Verdict

_DETAIL = re.compile(r"'.*'|\".*\"|\d+")
_HEADER = ("group", "cases", "enforced", "refused", "unsatisfiable", "failed", "valid", "rejected", "invalid",
           "accepted", "compile ms p50/p99/max", "fill CPU µs p50/p99/max")  # fmt: skip


@dataclass(frozen=True)
class Score:
    """Counts of one group. `failed`: over the time or memory of a worker. Instances count where enforced only.

    unsatisfiable: rightly refused, and not counted as refused.
    """

    group: str
    cases: int
    enforced: int
    refused: int
    unsatisfiable: int
    failed: int
    valid: int
    rejected: int
    invalid: int
    accepted: int
    compile_ms: tuple[float, float, float]
    fill_us: tuple[float, float, float]


def score(group: str, verdicts: Sequence[Verdict]) -> Score:
    """compile_ms is our part and the wait for masks together, over what was enforced."""
    enforced = [v for v in verdicts if v.status is Status.ENFORCED]
    refused, empty = (sum(v.status is s for v in verdicts) for s in (Status.REFUSED, Status.UNSATISFIABLE))
    return Score(
        group=group,
        cases=len(verdicts),
        enforced=len(enforced),
        refused=refused,
        unsatisfiable=empty,
        failed=len(verdicts) - len(enforced) - refused - empty,
        valid=sum(v.num_valid for v in enforced),
        rejected=sum(len(v.rejected) for v in enforced),
        invalid=sum(v.num_invalid for v in enforced),
        accepted=sum(len(v.accepted) for v in enforced),
        compile_ms=_spread([v.compile_ms + v.mask_ms for v in enforced]),
        fill_us=_spread([us for v in enforced for us in v.fill_us]),
    )


def scores(verdicts: Sequence[Verdict]) -> list[Score]:
    """One score per group in order of appearance, then the total."""
    groups: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault(verdict.group, []).append(verdict)
    return [score(group, members) for group, members in groups.items()] + [score("total", verdicts)]


def table(lines: Sequence[Score]) -> str:
    """Markdown."""
    rows = [_HEADER, tuple("---" for _ in _HEADER), *(_cells(line) for line in lines)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def refusals(verdicts: Sequence[Verdict]) -> str:
    """Markdown: how often each reason was given, most frequent first; what it quotes and counts is left out."""
    refused = [v for v in verdicts if v.status is Status.REFUSED]
    reasons = Counter(f"{v.keyword}: {_DETAIL.sub('…', v.reason)}".removeprefix(": ")[:110] for v in refused)
    return "\n".join(f"| {count} | {_escaped(reason)} |" for reason, count in reasons.most_common())


def faults(verdicts: Sequence[Verdict]) -> list[str]:
    """A line for each case with a wrong instance or without an end."""
    lines = [f"{v.id}: invalid accepted {list(v.accepted)}" for v in verdicts if v.accepted]
    lines += [f"{v.id}: valid rejected {list(v.rejected)}" for v in verdicts if v.rejected]
    return lines + [
        f"{v.id}: {v.status.value} {v.reason}" for v in verdicts if v.status in (Status.TIMEOUT, Status.CRASHED)
    ]


def slowest(verdicts: Sequence[Verdict], compile_ms: float, fill_us: float, limit: int = 20) -> list[str]:
    """A line for each case over a bound, the slowest compiles and then the slowest masks first, `limit` of each."""
    compiles = sorted(((v.compile_ms + v.mask_ms, v.id) for v in verdicts), reverse=True)
    fills = sorted(((max(v.fill_us, default=0.0), v.id) for v in verdicts), reverse=True)
    lines = [f"{name}: compile {ms:.0f} ms" for ms, name in compiles[:limit] if ms > compile_ms]
    return lines + [f"{name}: mask {us / 1e3:.1f} ms" for us, name in fills[:limit] if us > fill_us]


def to_json(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """JSON-ready: the scores and every verdict, its fill times left out."""
    cases = [{k: v for k, v in asdict(verdict).items() if k != "fill_us"} for verdict in verdicts]
    return {"scores": [asdict(line) for line in scores(verdicts)], "cases": cases}


def _cells(line: Score) -> tuple[str, ...]:
    numbers = (
        line.cases,
        line.enforced,
        line.refused,
        line.unsatisfiable,
        line.failed,
        line.valid,
        line.rejected,
        line.invalid,
        line.accepted,
    )
    compile_ms, fill_us = (" / ".join(f"{x:.3g}" for x in spread) for spread in (line.compile_ms, line.fill_us))
    return (_escaped(line.group), *map(str, numbers), compile_ms, fill_us)


def _spread(values: list[float]) -> tuple[float, float, float]:
    """Median, 99th percentile, maximum; zeros where there is nothing."""
    ordered = sorted(values) or [0.0]
    return ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)], ordered[-1]


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
