"""perf/report out of a run's results: README.md, figures and summary.jsonl beside the journal itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from stamp import stamp

from study import agents, cardinality, figures, pace, pressure, probe, ramp, tables
from study.findings import findings, tight_budget
from study.profiles import Profile
from study.records import Results
from study.summary import rows

_EXPERIMENTS = (
    ramp.BURST,
    ramp.SUSTAINED,
    ramp.TIGHT,
    pace.EXPERIMENT,
    cardinality.EXPERIMENT,
    pressure.EXPERIMENT,
    agents.TWO,
    agents.FIVE,
    probe.EXPERIMENT,
)


RUN = "run"


def told_of(profile: Profile, server: str, seconds: float) -> dict[str, Any]:
    """What the page says of a run as a whole; kept as the fact `RUN`."""
    libraries = {name: version(name) for name in ("llguidance", "jsonschema-rs")}
    told = stamp()
    versions = {**told["versions"], **libraries}
    return {**told, "versions": versions, "profile": profile.name, "server": server, "seconds": round(seconds)}


def write(results: Results, folder: Path) -> None:
    """Out of results that hold the fact `RUN`; overwrites what an earlier run left under these names."""
    figures.draw(results, folder)
    told = results.facts_of(RUN)[-1]
    lines: list[dict[str, Any]] = [{"kind": RUN, **told}]
    lines += [{"kind": "row", **asdict(r)} for name in _EXPERIMENTS for r in rows(results, name)]
    lines += [{"kind": "finding", **asdict(f)} for f in findings(results)]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    (folder / "summary.jsonl").write_text(text, encoding="utf-8")
    (folder / "README.md").write_text(_markdown(results, told), encoding="utf-8")


def _markdown(results: Results, told: dict[str, Any]) -> str:
    head = ("# The reliability study on this stack", _heading(told), "## Findings: theirs and ours")
    sections = (part for section in (_load, _pace, _schemas, _offline) for part in section(results))
    return "\n\n".join((*head, tables.of_findings(results), _LIMITS, *sections)) + "\n"


def _load(results: Results) -> Iterator[str]:
    yield "## Burst ramp"
    yield "![validity by concurrency](load.svg)"
    yield from _tables(results, ramp.BURST)
    yield "## Sustained, past the batch capacity; with and without a connection pool"
    yield from _tables(results, ramp.SUSTAINED)
    yield "## A budget that is too small for some answers"
    yield f"{tight_budget(results)} tokens, temperature 0, the same documents at each level."
    yield tables.of_rows(results, ramp.TIGHT)


def _pace(results: Results) -> Iterator[str]:
    yield "## What a constraint costs per token"
    yield "![time per token](pace.svg)"
    yield tables.of_rows(results, pace.EXPERIMENT)
    yield "Milliseconds of an engine step by stage:"
    yield tables.of_split(results, pace.EXPERIMENT)


def _schemas(results: Results) -> Iterator[str]:
    yield "## Many schemas, and a grammar cache that is too small"
    yield "![time per token by schemas](cardinality.svg)"
    yield tables.of_cardinality(results)
    yield tables.of_server(results, cardinality.EXPERIMENT)
    yield "## Preemption forced while constrained"
    yield from _tables(results, pressure.EXPERIMENT)
    yield "## Conversations"
    yield tables.of_rows(results, agents.TWO)
    yield tables.of_rows(results, agents.FIVE)


def _offline(results: Results) -> Iterator[str]:
    yield "## Keyword grid"
    yield _GRID
    yield tables.of_probe(results)
    yield tables.of_rows(results, probe.EXPERIMENT)
    yield "## Repairing what was cut"
    yield "![repaired, valid and wrong](repair.svg)"
    yield "Share of documents whose repair validates / validates and is not the original."
    yield tables.of_truncation(results)
    yield "## Cost of retries"
    yield tables.of_cost()


def _tables(results: Results, experiment: str) -> tuple[str, str]:
    return tables.of_rows(results, experiment), tables.of_server(results, experiment)


def _heading(told: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {value}" for name, value in told["versions"].items())
    machine = told["machine"]
    return (
        f"Made by `make study PROFILE={told['profile']}` in {told['seconds']} s; server: {told['server']}. Commit "
        f"{told['commit']}; {versions}. Every answer was judged by jsonschema-rs. {machine['cpu']}, "
        f"{machine['cores']} cores, {machine['memory_gib']} GiB. Every request is in "
        "[requests.jsonl.gz](requests.jsonl.gz), every figure in [summary.jsonl](summary.jsonl); "
        "`make study ARGS=--report-only` makes this page of what was kept. The study: vLLM 0.27.1, xgrammar 0.2.3, "
        "Qwen2.5-7B-Instruct, one H100, batch capacity 128; here the capacity is 32 rows. Temperature 0.7 and a seed "
        "per request unless a section says otherwise; all requests stream, so times to the first token are from the "
        "same pass."
    )


_LIMITS = (
    "What this is not: a run of a few minutes on two cores shows that mechanisms hold, not how rates would settle over "
    "hours. No managed endpoint and no second engine was measured. Prompts tell every value, so that `semantic` is a "
    "matter of copying; conversations are scripted, since SmolLM2 has 135 M parameters. Rates of arms at temperature 0 "
    "are of repeated paths."
)
_GRID = (
    "`ours` and `prompt_only` were asked live, at temperature 1, for a value that breaks the keyword; `ignored` means "
    "that one came back. The two libraries were asked offline whether their matcher accepts that value, which needs no "
    "luck. `typed / untyped` where the two differ."
)
