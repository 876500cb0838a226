"""perf/report out of a run's results: README.md, figures and summary.jsonl beside the journal itself."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from stamp import stamp

from study import agents, cardinality, figures, pace, pressure, probe, ramp, tables
from study.findings import findings
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
    return (
        "\n\n".join(
            (
                "# The reliability study on this stack",
                _heading(told),
                "## Findings: theirs and ours",
                tables.of_findings(results),
                _LIMITS,
                "## Burst ramp",
                "![validity by concurrency](load.svg)",
                tables.of_rows(results, ramp.BURST),
                tables.of_server(results, ramp.BURST),
                "## Sustained, past the batch capacity; with and without a connection pool",
                tables.of_rows(results, ramp.SUSTAINED),
                tables.of_server(results, ramp.SUSTAINED),
                "## A budget that is too small for some answers",
                f"{ramp.TIGHT_TOKENS} tokens, temperature 0, the same documents at each level.",
                tables.of_rows(results, ramp.TIGHT),
                "## What a constraint costs per token",
                "![time per token](pace.svg)",
                tables.of_rows(results, pace.EXPERIMENT),
                "Milliseconds of an engine step by stage:",
                tables.of_split(results, pace.EXPERIMENT),
                "## Many schemas, and a grammar cache that is too small",
                "![time per token by schemas](cardinality.svg)",
                tables.of_cardinality(results),
                tables.of_server(results, cardinality.EXPERIMENT),
                "## Preemption forced while constrained",
                tables.of_rows(results, pressure.EXPERIMENT),
                tables.of_server(results, pressure.EXPERIMENT),
                "## Conversations",
                tables.of_rows(results, agents.TWO),
                tables.of_rows(results, agents.FIVE),
                "## Keyword grid",
                _GRID,
                tables.of_probe(results),
                tables.of_rows(results, probe.EXPERIMENT),
                "## Repairing what was cut",
                "![repaired, valid and wrong](repair.svg)",
                "Share of documents whose repair validates / validates and is not the original.",
                tables.of_truncation(results),
                "## Cost of retries",
                tables.of_cost(),
            )
        )
        + "\n"
    )


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
