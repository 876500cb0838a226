"""Cases run one after another in a worker process that can be killed: native code can hang or end it."""

from __future__ import annotations

import math
import signal
from collections.abc import Iterable, Iterator
from dataclasses import replace

from guided_grammar.conformance.case import Case, Status, Verdict
from guided_grammar.conformance.judge import Setting
from guided_grammar.worker import Worker, WorkerDied, WorkerTimeout

_JUDGE = "guided_grammar.conformance.judge:judge"
_PREPARE = "guided_grammar.conformance.judge:prepare"
_PREPARE_SECONDS = 300.0
_CLOCK = 10


def run(
    cases: Iterable[Case], setting: Setting, seconds: float = 30.0, memory_bytes: int = 16 << 30
) -> Iterator[Verdict]:
    """A verdict for each case, in order; a case over its time or `memory_bytes` gets one that says so.

    seconds: of processor time; on the clock a case may take ten times as long.
    """
    setting = replace(setting, cpu_seconds=math.ceil(seconds))
    worker = Worker(memory_bytes)
    try:
        for case in cases:
            yield _judged(worker, case, setting, seconds)
    finally:
        worker.close()


def _judged(worker: Worker, case: Case, setting: Setting, seconds: float) -> Verdict:
    try:
        if not worker.is_running:
            worker.call(_PREPARE, setting, seconds=_PREPARE_SECONDS)
        verdict: Verdict = worker.call(_JUDGE, case, setting, seconds=_CLOCK * seconds)
        return verdict
    except WorkerTimeout:
        return Verdict(case.id, case.group, Status.TIMEOUT, f"no verdict within {_CLOCK * seconds:g} s")
    except WorkerDied as error:
        if error.status == -signal.SIGXCPU:
            return Verdict(case.id, case.group, Status.TIMEOUT, f"no verdict within {seconds:g} s of processor time")
        return Verdict(case.id, case.group, Status.CRASHED, str(error))
    except RuntimeError as error:
        return Verdict(case.id, case.group, Status.CRASHED, str(error))
