"""Write perf/conformance.md: our compiler, xgrammar's own converter and llguidance over the same corpora.

python perf/conformance.py [--corpus NAME]... [--engine NAME]... [--tokenizer DIR]... [--every N] [--budget SECONDS]

Verdicts are kept in --rows and never judged twice: a run that --budget ends, or that takes one corpus only, is gone on
with by the next one. --report writes the scoreboard of what is kept and judges nothing. --fresh forgets what is kept
of the chosen corpora and engines.
"""

from __future__ import annotations

import argparse
import datetime
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from conformance_report import report
from conformance_rows import CORPORA, Arm, Retained, selected_cases
from guided_grammar.conformance.case import Case, Status, Verdict
from guided_grammar.conformance.judge import Setting
from guided_grammar.conformance.run import run
from guided_grammar.limits import DEFAULT_LIMITS
from guided_grammar.spec import Kind
from guided_grammar.worker import Worker, WorkerDied, WorkerTimeout
from stamp import stamp

ENGINES = ("ours", "xgrammar", "llguidance")
_RIVAL_BYTES = 16 << 30


def main() -> int:
    """Exit status: 1 if we accepted any invalid instance, 3 if the budget ended before everything had a verdict."""
    options = _parser().parse_args()
    rows = Retained(Path(options.rows))
    deadline = time.monotonic() + options.budget
    corpora = [] if options.report else options.corpus or list(CORPORA)
    is_whole = all(_judge(rows, options, corpus, deadline) for corpus in corpora)
    text, accepted = report(rows)
    Path(options.out).write_text(text, encoding="utf-8")
    return 1 if accepted else 0 if is_whole else 3


def _judge(rows: Retained, options: argparse.Namespace, corpus: str, deadline: float) -> bool:
    selected, total = selected_cases(Path(options.data), corpus, options.every)
    is_whole = True
    for arm, judge in _arms(options):
        if time.monotonic() > deadline:
            return False
        if options.fresh:
            rows.path(corpus, arm).unlink(missing_ok=True)
        wanted = [(at, case) for at, case in selected if arm.engine == "ours" or case.spec.kind is Kind.JSON_SCHEMA]
        if not wanted:
            continue
        most = total if len(wanted) == len(selected) else len(wanted) * options.every
        done = rows.extend(corpus, arm, wanted, most, _stamp(arm), judge, deadline)
        sys.stderr.write(f"{corpus}, {arm.engine}, {arm.vocabulary}: {'done' if done else 'stopped'}\n")
        is_whole &= done
    return is_whole


def _arms(options: argparse.Namespace) -> Iterator[tuple[Arm, Callable[[Iterator[Case]], Iterator[Verdict]]]]:
    for engine in options.engine or ENGINES:
        if engine != "ours":
            yield Arm(engine), partial(_rival, engine, seconds=options.seconds)
            continue
        for folder in options.tokenizer or [""]:
            limits = replace(DEFAULT_LIMITS, schema_bytes=1 << 22)
            setting = Setting(limits, folder, options.vocab_size)
            yield Arm(engine, Path(folder).name or "bytes"), partial(run, setting=setting, seconds=options.seconds)


def _rival(name: str, selected: Iterable[Case], seconds: float) -> Iterator[Verdict]:
    """Verdicts of another engine on JSON Schema cases."""
    worker = Worker(_RIVAL_BYTES, [str(Path(__file__).parent)])
    try:
        for case in selected:
            try:
                yield worker.call(f"rivals:{name}_", case, seconds=seconds)
            except WorkerTimeout:
                yield Verdict(case.id, case.group, Status.TIMEOUT)
            except (WorkerDied, RuntimeError) as error:
                yield Verdict(case.id, case.group, Status.CRASHED, str(error))
    finally:
        worker.close()


def _stamp(arm: Arm) -> dict[str, Any]:
    packages = ("triton-guided", "xgrammar", "llguidance")
    return {
        "day": datetime.date.today().isoformat(),
        "engine": arm.engine,
        "commit": stamp()["commit"],
        "machine": stamp()["machine"],
        "load": os.getloadavg()[0],
        "versions": {name: version(name) for name in packages} | {"Python": stamp()["versions"]["python"]},
    }


def _parser() -> argparse.ArgumentParser:
    here = Path(__file__)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", action="append", choices=tuple(CORPORA))
    parser.add_argument("--engine", action="append", choices=ENGINES)
    parser.add_argument("--tokenizer", action="append", help="folder of a tokenizer.json, by whose name it is known")
    parser.add_argument("--vocab-size", type=int)
    parser.add_argument("--data", default=str(here.parents[2] / "shared/data"))
    parser.add_argument("--rows", default=str(here.parents[1] / "build/conformance"))
    parser.add_argument("--every", type=int, default=1, help="take each n-th case only")
    parser.add_argument("--seconds", type=float, default=30.0, help="processor time of one case")
    parser.add_argument("--budget", type=float, default=float("inf"), help="seconds after which to stop")
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--out", default=str(here.with_suffix(".md")))
    return parser


if __name__ == "__main__":
    sys.exit(main())
