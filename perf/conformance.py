"""Write perf/conformance.md: our compiler, xgrammar's own converter and llguidance over the same corpora, in one run.

python perf/conformance.py [--data ../shared/data] [--tokenizer DIR] [--vocab-size N] [--every N] [--out FILE]
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from importlib.metadata import version
from itertools import chain, islice
from pathlib import Path

from guided_grammar.conformance.case import Case, Status, Verdict
from guided_grammar.conformance.judge import Setting
from guided_grammar.conformance.rows import cases
from guided_grammar.conformance.run import run
from guided_grammar.conformance.scoreboard import Score, faults, refusals, score, scores, slowest, table, to_json
from guided_grammar.limits import DEFAULT_LIMITS
from guided_grammar.spec import Kind
from guided_grammar.worker import Worker, WorkerDied, WorkerTimeout

CORPORA = {
    "JSON Schema Test Suite, draft 2020-12": ["json_schema_test_suite/draft2020-12.jsonl"],
    "JSON Schema Test Suite, drafts 4 to 2019-09": [
        f"json_schema_test_suite/draft{d}.jsonl" for d in ("4", "6", "7", "2019-09")
    ],
    "MaskBench": ["maskbench/schemas/*.jsonl", "maskbench/compile_only.jsonl"],
    "SchemaStore": ["schemastore/schemastore.jsonl"],
    "Formats": ["formats/formats.jsonl"],
    "Regular expressions": ["regex/regex.jsonl", "xgrammar/regex.jsonl"],
    "GBNF": ["gbnf/gbnf.jsonl", "llama_cpp/gbnf_accept_reject.jsonl", "xgrammar/ebnf.jsonl"],
    "Schemas of other engines' tests": [
        "xgrammar/schema.jsonl",
        "llama_cpp/schema_accept_reject.jsonl",
        "bugs/BUGS.jsonl",
    ],
    "Tools": ["tools/tools.jsonl", "bfcl/bfcl.jsonl"],
}
RIVALS = ("xgrammar", "llguidance")


def main() -> int:
    """Exit status 1 if we accepted any invalid instance."""
    options = _parser().parse_args()
    setting = Setting(replace(DEFAULT_LIMITS, schema_bytes=1 << 22), options.tokenizer, options.vocab_size)
    selected = {name: list(_selected(Path(options.data), globs, options.every)) for name, globs in CORPORA.items()}
    flat = list(chain.from_iterable(selected.values()))
    everything = list(run(flat, setting, options.seconds))
    ours, rivals = iter(everything), {rival: _rival(rival, flat, options.seconds) for rival in RIVALS}
    parts = [_heading(options)]
    totals: list[tuple[str, Score, list[Score]]] = []
    for name, asked in selected.items():
        verdicts = list(islice(ours, len(asked)))
        num_schemas = sum(case.spec.kind is Kind.JSON_SCHEMA for case in asked)
        theirs = [score(rival, list(islice(judged, num_schemas))) for rival, judged in rivals.items()]
        totals.append((name, score("ours", verdicts), theirs))
        parts.append(_section(name, verdicts, theirs))
        sys.stderr.write(f"{name}: {len(asked)} cases\n")
    parts.insert(1, _summary(totals))
    Path(options.out).write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    if options.json:
        Path(options.json).write_text(json.dumps(to_json(everything), ensure_ascii=False), encoding="utf-8")
    return int(any(verdict.accepted for verdict in everything))


def _selected(data: Path, patterns: Sequence[str], every: int) -> Iterator[Case]:
    at = 0
    for path in (path for pattern in patterns for path in sorted(data.glob(pattern))):
        for case in cases(path):
            if at % every == 0:
                yield case
            at += 1


def _rival(name: str, selected: Iterable[Case], seconds: float) -> Iterator[Verdict]:
    """Verdicts of another engine on the JSON Schema cases."""
    worker = Worker(16 << 30, [str(Path(__file__).parent)])
    try:
        for case in selected:
            if case.spec.kind is not Kind.JSON_SCHEMA:
                continue
            try:
                yield worker.call(f"rivals:{name}_", case, seconds=seconds)
            except WorkerTimeout:
                yield Verdict(case.id, case.group, Status.TIMEOUT)
            except (WorkerDied, RuntimeError) as error:
                yield Verdict(case.id, case.group, Status.CRASHED, str(error))
    finally:
        worker.close()


def _heading(options: argparse.Namespace) -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in ("triton-guided", "xgrammar", "llguidance"))
    part = "" if options.every == 1 else f" Sample: one case in {options.every}."
    words = f"{Path(options.tokenizer).name}, token by token and byte by byte" if options.tokenizer else "single bytes"
    return f"""# Conformance

{datetime.date.today()}; {packages}; Python {platform.python_version()}; vocabulary: {words}.{part}
Load average of the last 15 minutes: {os.getloadavg()[2]:.1f} on {os.cpu_count()} cores.

An instance counts where its constraint was enforced. Valid instances are written in our canonical spelling (keys in
declared order, `", "` and `": "`, no exponents); the other engines get them with blanks allowed and keys as they stand.
*accepted* is what a constrained decoder must never have: invalid instances let through. Compile time is the CPU time of
our part and the wait for the masks on the wall clock; mask times are CPU time of one core, those of a position that is
seen for the first time included. Limits are the defaults, except that the size of a schema is not limited here."""


def _summary(totals: Sequence[tuple[str, Score, list[Score]]]) -> str:
    rows = ["## Invalid instances accepted, and constraints refused", ""]
    rows += ["| corpus | engine | constraints | refused | failed | valid rejected | invalid accepted |"]
    rows += ["| --- | --- | --- | --- | --- | --- | --- |"]
    for name, ours, theirs in totals:
        rows += [_line(name, engine) for engine in (ours, *theirs) if engine.cases]
    return "\n".join(rows)


def _line(corpus: str, s: Score) -> str:
    return (
        f"| {corpus} | {s.group} | {s.cases} | {s.refused} | {s.failed} | {s.rejected} of {s.valid} "
        f"| {s.accepted} of {s.invalid} |"
    )


def _section(name: str, ours: Sequence[Verdict], theirs: Sequence[Score]) -> str:
    lines = scores(ours)
    parts = [f"## {name}", table([*lines, *(s for s in theirs if s.cases)])]
    reasons = refusals(ours)
    if reasons:
        parts.append("| refused | reason |\n| --- | --- |\n" + reasons)
    wrong = [*faults(ours), *slowest(ours, compile_ms=1000.0, fill_us=10_000.0)]
    if wrong:
        parts.append("\n".join(f"- {line}" for line in wrong))
    return "\n\n".join(parts)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="../shared/data")
    parser.add_argument("--tokenizer", default="")
    parser.add_argument("--vocab-size", type=int)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--out", default=str(Path(__file__).with_suffix(".md")))
    parser.add_argument("--json", default="")
    return parser


if __name__ == "__main__":
    sys.exit(main())
