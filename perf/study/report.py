"""perf/report out of a journal: README.md, figures and summary.jsonl beside the journal itself."""

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
from study.records import Journal
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


def write(journal: Journal, profile: Profile, server: str, seconds: float, folder: Path) -> None:
    """Overwrites what an earlier run left under these names."""
    figures.draw(journal, folder)
    told = {"profile": profile.name, "server": server, "seconds": round(seconds), **stamp()}
    told["validator"] = f"jsonschema-rs {version('jsonschema-rs')}"
    told["versions"]["llguidance"] = version("llguidance")
    lines: list[dict[str, Any]] = [{"kind": "run", **told}]
    lines += [{"kind": "row", **asdict(r)} for name in _EXPERIMENTS for r in rows(journal, name)]
    lines += [{"kind": "finding", **asdict(f)} for f in findings(journal)]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    (folder / "summary.jsonl").write_text(text, encoding="utf-8")
    (folder / "README.md").write_text(_markdown(journal, told), encoding="utf-8")


def _markdown(journal: Journal, told: dict[str, Any]) -> str:
    return (
        "\n\n".join(
            (
                "# The reliability study on this stack",
                _heading(told),
                "## Findings: theirs and ours",
                tables.of_findings(journal),
                _LIMITS,
                "## Burst ramp",
                "![validity by concurrency](load.svg)",
                tables.of_rows(journal, ramp.BURST),
                tables.of_server(journal, ramp.BURST),
                "## Sustained, past the batch capacity; with and without a connection pool",
                tables.of_rows(journal, ramp.SUSTAINED),
                tables.of_server(journal, ramp.SUSTAINED),
                "## A budget that is too small (16 tokens, temperature 0)",
                tables.of_rows(journal, ramp.TIGHT),
                "## What a constraint costs per token",
                "![time per token](pace.svg)",
                tables.of_rows(journal, pace.EXPERIMENT),
                "Milliseconds of an engine step by stage:",
                tables.of_split(journal, pace.EXPERIMENT),
                "## Many schemas, and a grammar cache that is too small",
                "![time per token by schemas](cardinality.svg)",
                tables.of_cardinality(journal),
                tables.of_server(journal, cardinality.EXPERIMENT),
                "## Preemption forced while constrained",
                tables.of_rows(journal, pressure.EXPERIMENT),
                tables.of_server(journal, pressure.EXPERIMENT),
                "## Conversations",
                tables.of_rows(journal, agents.TWO),
                tables.of_rows(journal, agents.FIVE),
                "## Keyword grid",
                _GRID,
                tables.of_probe(journal),
                tables.of_rows(journal, probe.EXPERIMENT),
                "## Repairing what was cut",
                "![repaired, valid and wrong](repair.svg)",
                "Share of documents whose repair validates / validates and is not the original.",
                tables.of_truncation(journal),
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
        f"{told['commit']}; {versions}; validator {told['validator']}. {machine['cpu']}, {machine['cores']} cores, "
        f"{machine['memory_gib']} GiB. Every request is in [requests.jsonl.gz](requests.jsonl.gz), every figure in "
        "[summary.jsonl](summary.jsonl). The study: vLLM 0.27.1, xgrammar 0.2.3, Qwen2.5-7B-Instruct, one H100, batch "
        "capacity 128; here the capacity is 32 rows. Temperature 0.7 and a seed per request unless a section says "
        "otherwise; all requests stream, so times to the first token are from the same pass."
    )


_LIMITS = (
    "What this is not: a run of a few minutes on two cores shows that mechanisms hold, not how rates would settle over "
    "hours. No managed endpoint and no second engine was measured. `semantic` is low because SmolLM2 has 135 M "
    "parameters; conversations are scripted for the same reason. Rates of arms at temperature 0 are of repeated paths."
)
_GRID = (
    "`ours` and `prompt_only` were asked live, at temperature 1, for a value that breaks the keyword; `ignored` means "
    "that one came back. The two libraries were asked offline whether their matcher accepts that value, which needs no "
    "luck. `typed / untyped` where the two differ."
)
