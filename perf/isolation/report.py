"""The rows of a run as perf/isolation.md."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]

_HEAD = """# Isolation

What one constraint can do to the others, measured. `PYTHONPATH=perf python -m isolation PART…` runs a part and keeps
its rows in [isolation.jsonl](isolation.jsonl); `… report` writes this page from them. Bounds are those of the design:
bystanders keep their median pace within 1.3 times their own quiet run, each hostile request is answered within 10 s,
no process passes its limit, per-token decode under a cache of 1 MiB stays within 1.1 times the default.
"""

_BYSTANDERS = """## Bystanders of the hostile corpus

Eight streams (four constrained, four free) that ask again as soon as an answer ends; first alone, then beside the
corpus of `tests/support/guided_testing/hostile.py`, then alone again, in one run. Gaps between events at the client.
Accepted hostile requests decode beside them, so the batch is larger then, too. A 503 is a constraint that found no
worker in time, because another hostile one held it.
"""

_KILLS = """## Workers killed under load

16 constrained streams; every request brings a schema that nobody has asked for before, so the compile workers of the
frontend and of the engine, and the prover, are in use; `kill -9` of a random one, busy or not, at a steady pace.
"""

_MASKS = """## Masks in the engine's process

Every hostile constraint that passes compile and proof, then random answers of up to 600 tokens under it, twice, with
everything that a step asks of a grammar (mask, accept, forced text). CPU time; in a process that may die.
"""

_PLACEMENT = """The same work for one step, made in the engine's process and in a process beside it that puts dense
masks into shared memory and answers over a pipe (wall clock from sending tokens to having the next masks). The 99th
percentile holds steps in which ended rows start again:
"""

_DECISION = """Decision: masks stay in the engine's process. A grammar gets there only after a worker has compiled,
started and walked it under a clock and a memory bound; from then on the meter of its row ends that row with a 400 once
its masks have taken `GUIDED_MASK_SECONDS` (3 s) more than 5 ms a token. Costs that grow along an answer grow from step
to step, so the step that crosses the line is not much longer than the ones before it. What this cannot do is interrupt
one mask, or survive a crash inside xgrammar: then the engine's process ends, its streams get an error, and the
supervisor starts it again. A mask process would survive that at the price of the table above on every step, a second
copy of the vocabulary's tables and the cache, and a replay of all rows after each restart. The seam for it is
`batch.Masked`: rows that can fill a mask, wherever that happens.
"""

_CARDINALITY = """## Distinct schemas

Engine side without the model: each schema twice in round robin, 16 answers in flight, 24 random tokens each; CPU time
of mask and accept per token. The default again at the end shows that nothing drifted.
"""

_GROWTH = """One process that compiles, starts and walks 10,000 distinct schemas with the default cache (512 MiB, half
of it for compiled grammars):
"""


def page(rows: Sequence[Row]) -> str:
    """Markdown; a part without rows says that it was not run."""
    parts = [
        _HEAD,
        _stamps(rows),
        _BYSTANDERS,
        _table(rows, "bystanders", "stretch", "seconds", "gaps", "p50_ms", "p95_ms", "p99_ms", "ratio_p50"),
        _facts(rows, "corpus"),
        _table(rows, "memory", "process", "rss_mib", "limit_mib", "processes_seen"),
        _KILLS,
        _facts(rows, "kills"),
        _MASKS,
        _facts(rows, "walks"),
        _table(rows, "walk", "name", "end", "tokens", "slowest_ms", "mean_ms", "total_ms", "grown_mib"),
        _PLACEMENT,
        _table(rows, "placement", "rows", "here_us_p50", "process_us_p50", "here_us_p99", "process_us_p99"),
        _DECISION,
        _CARDINALITY,
        _table(
            rows,
            "cardinality",
            "cache",
            "distinct",
            "us_per_token",
            "us_per_token_p50",
            "us_per_token_p99",
            "build_ms_p50",
            "hits",
            "misses",
            "evictions",
            "cache_mib",
            "rss_mib",
        ),
        _GROWTH,
        _table(rows, "growth", "schemas", "rss_mib", "cache_mib", "evictions", "seconds"),
    ]
    return "\n".join(parts)


def _stamps(rows: Sequence[Row]) -> str:
    lines = {
        f"- {row['run']}: commit `{row['commit']}`, load average at its end {row['load']}, "
        f"{row['machine']['cpu']}, {row['machine']['cores']} cores, xgrammar {row['versions']['xgrammar']}"
        for row in rows
    }
    return "\n".join(sorted(lines)) + "\n"


def _table(rows: Sequence[Row], part: str, *columns: str) -> str:
    found = [row for row in rows if row["part"] == part]
    if not found:
        return "Not run.\n"
    lines = [f"| {' | '.join(column.replace('_', ' ') for column in columns)} |", "|---" * len(columns) + "|"]
    lines += [f"| {' | '.join(_cell(row.get(column)) for column in columns)} |" for row in found]
    return "\n".join(lines) + "\n"


def _facts(rows: Sequence[Row], part: str) -> str:
    """One row as a list."""
    skipped = {"run", "part", "load", "commit", "machine", "versions"}
    found = [row for row in rows if row["part"] == part]
    if not found:
        return "Not run.\n"
    return "\n".join(f"- {k.replace('_', ' ')}: {_cell(v)}" for k, v in found[-1].items() if k not in skipped) + "\n"


def _cell(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_cell(each)}" for key, each in value.items()) or "none"
    return json.dumps(value).strip('"') if isinstance(value, (bool, str)) else "–" if value is None else str(value)
