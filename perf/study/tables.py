"""Markdown of the report's tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

from study import cardinality, probe, truncation
from study.findings import findings, warm
from study.keywords import MORE, STUDY
from study.records import Results
from study.summary import Row, attempts, row, rows

_STAGES = ("schedule", "forward", "mask", "head", "sample", "commit")


def table(head: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    shown = [[_cell(value) for value in line] for line in lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in (list(head), ["---"] * len(head), *shown))


def _cell(value: Any) -> str:
    return "–" if value is None or value == "" else str(value).replace("|", "\\|")


def of_findings(results: Results) -> str:
    head = ("acceptance", "theirs", "ours", "verdict", "why")
    return table(head, ((f.ids, f.theirs, f.ours, f.verdict, f.why) for f in findings(results)))


def of_rows(results: Results, experiment: str) -> str:
    """Every column of `Row` but the experiment's name."""
    names = [f.name for f in fields(Row) if f.name != "experiment"]
    return table(names, ([getattr(r, n) for n in names] for r in rows(results, experiment)))


def of_server(results: Results, experiment: str) -> str:
    """What the engine's metrics said over each level."""
    head = ("arm", "level", "running", "waiting", "kv tokens", "preempted", "forced share", "cache MiB", "evictions")
    lines = []
    for f in results.facts_of(experiment):
        if "guided_steps_total" not in f:
            continue
        generated = f["guided_generated_tokens_total"] or 1
        share = round(f["guided_forced_tokens_total"] / generated, 3)
        peaks = [int(f[f"guided_{n}"]) for n in ("running_rows", "waiting_choices", "kv_tokens")]
        mib = round(f["guided_grammar_cache_bytes"] / 2**20, 2)
        counts = [int(f["guided_preempted_choices_total"]), share, mib, int(f["guided_grammar_cache_evictions_total"])]
        lines.append([f["arm"], f["level"], *peaks, *counts])
    return table(head, lines)


def of_split(results: Results, experiment: str) -> str:
    """Milliseconds of a step by stage; rounds of one arm and level are added up."""
    sums: dict[tuple[str, int], dict[str, float]] = {}
    for f in (f for f in results.facts_of(experiment) if "guided_steps_total" in f):
        into = sums.setdefault((f["arm"], f["level"]), dict.fromkeys(("steps", *_STAGES), 0.0))
        into["steps"] += f["guided_steps_total"]
        for stage in _STAGES:
            into[stage] += f[f"guided_{stage}_seconds_total"]
    head = ("arm", "batch", "steps", *(f"{stage} ms" for stage in _STAGES))
    return table(
        head,
        (
            (arm, level, int(s["steps"]), *(round(1000 * s[stage] / (s["steps"] or 1), 3) for stage in _STAGES))
            for (arm, level), s in sums.items()
        ),
    )


def of_cardinality(results: Results) -> str:
    """Without each schema's first reading; `reached` is the number of schemas that really came."""
    head = ("arm", "schemas", "reached", "requests", "validity", "ttft p50 ms", "per token p50 ms", "e2e p99 ms")
    lines = []
    for whole in rows(results, cardinality.EXPERIMENT):
        records = warm(results, whole.arm, whole.level)
        reached = len({r.case for r in results.of(cardinality.EXPERIMENT, arm=whole.arm, level=whole.level)})
        r = row(cardinality.EXPERIMENT, whole.arm, whole.level, records)
        times = (r.ttft_p50_ms, r.per_token_p50_ms, r.e2e_p99_ms)
        lines.append((whole.arm, whole.level, reached, r.requests, whole.validity, *times))
    return table(head, lines)


def of_truncation(results: Results) -> str:
    """Of each family, the share of repaired documents that validate, and that validate and are not the original."""
    facts = results.facts_of(truncation.EXPERIMENT)
    families = list(dict.fromkeys(f["family"] for f in facts))
    cuts = sorted({f["cut_percent"] for f in facts})
    shares = {(f["family"], f["cut_percent"]): _shares(f) for f in facts}
    return table(("cut at %", *families), ((cut, *(shares[name, cut] for name in families)) for cut in cuts))


def _shares(fact: dict[str, Any]) -> str:
    valid, same = fact.get("valid", 0), fact.get("identical", 0)
    return f"{valid / fact['documents']:.2f} / {(valid - same) / fact['documents']:.2f}"


def of_probe(results: Results) -> str:
    """One line per keyword; typed / untyped where they differ."""
    facts = [f for f in results.facts_of(probe.EXPERIMENT) if "cell" in f]
    arms = list(dict.fromkeys(f["arm"] for f in facts))
    cells = {(f["arm"], f["keyword"], f["typed"]): f["cell"] for f in facts}
    lines = []
    for keyword in (*STUDY, *MORE):
        pairs = [[cells.get((arm, keyword.name, typed), "–") for typed in (True, False)] for arm in arms]
        lines.append((keyword.name, *(p[0] if p[0] == p[1] else " / ".join(p) for p in pairs)))
    return table(("keyword", *arms), lines)


def of_cost() -> str:
    """Expected attempts and tokens for one usable answer, by the failure rate of an attempt (at most three)."""
    price = (2000 + 400) * 0.65 / 1e6
    return table(
        ("failure of an attempt", "attempts", "USD per request of 2,000 + 400 tokens", "left after three"),
        (
            (f"{p:.0%}", round(attempts(p), 4), f"{price * attempts(p):.6f}", f"{p**3:.4%}")
            for p in (0, 0.04, 0.15, 0.5)
        ),
    )
