"""The killable process: answers, refusals, and every way a call can fail to return."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from guided_grammar.errors import LimitExceeded
from guided_grammar.limits import Limits
from guided_grammar.worker import Worker, WorkerDied, WorkerTimeout
from guided_testing.family import kill


@pytest.fixture
def worker() -> Iterator[Worker]:
    worker = Worker(1 << 30, [str(Path(__file__).parents[1] / "support")])
    yield worker
    worker.close()


def test_calls_are_answered_by_one_other_process(worker: Worker) -> None:
    pids = {worker.call("os:getpid", seconds=30) for _ in range(3)}
    assert len(pids) == 1 and os.getpid() not in pids


def test_large_arguments_and_results_pass(worker: Worker) -> None:
    assert worker.call("builtins:len", "x" * 5_000_000, seconds=30) == 5_000_000
    assert worker.call("builtins:bytes", 5_000_000, seconds=30) == bytes(5_000_000)


def test_a_refusal_arrives_as_the_error_it_was(worker: Worker) -> None:
    with pytest.raises(LimitExceeded) as caught:
        worker.call("guided_grammar.choice:compile_choice", ["a", "b"], Limits(choice_count=1), seconds=30)
    assert (caught.value.limit, caught.value.got, caught.value.keyword) == (1, 2, "choice")


def test_another_exception_arrives_as_its_text(worker: Worker) -> None:
    with pytest.raises(RuntimeError, match="ValueError: invalid literal"):
        worker.call("builtins:int", "x", seconds=30)
    assert worker.call("builtins:int", "7", seconds=30) == 7


def test_what_a_call_prints_does_not_reach_the_answers(worker: Worker) -> None:
    assert worker.call("builtins:print", "noise", seconds=30) is None
    assert worker.call("os:write", 1, b"noise", seconds=30) == 5
    assert worker.call("builtins:abs", -3, seconds=30) == 3


def test_a_call_that_the_process_never_reads_is_a_death_of_it(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    pid = worker.call("os:getpid", seconds=30)
    kill(pid)
    monkeypatch.setattr(Worker, "is_running", True)
    with pytest.raises(WorkerDied):
        worker.call("builtins:abs", -3, seconds=30)
    monkeypatch.undo()
    assert worker.call("builtins:abs", -3, seconds=30) == 3


def test_a_call_over_its_time_is_killed_and_the_next_one_works(worker: Worker) -> None:
    pid = worker.call("os:getpid", seconds=30)
    started = time.monotonic()
    with pytest.raises(WorkerTimeout):
        worker.call("time:sleep", 60, seconds=0.2)
    assert time.monotonic() - started < 5
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert worker.call("os:getpid", seconds=30) != pid


@pytest.mark.parametrize(("function", "argument"), [("os:_exit", 3), ("builtins:bytes", 4 << 30), ("os:abort", None)])
def test_a_process_that_ends_or_runs_out_of_memory_is_reported(worker: Worker, function: str, argument: object) -> None:
    arguments = [] if argument is None else [argument]
    with pytest.raises(WorkerDied):
        worker.call(function, *arguments, seconds=30)
    assert worker.call("builtins:abs", -3, seconds=30) == 3


@pytest.mark.parametrize(("argument", "out_of_memory"), [(1, True), (3, False)])
def test_the_status_tells_memory_from_other_ends(worker: Worker, argument: int, out_of_memory: bool) -> None:
    with pytest.raises(WorkerDied) as caught:
        worker.call("os:_exit", argument, seconds=30)
    assert (caught.value.status, caught.value.out_of_memory) == (argument, out_of_memory)


def test_only_a_call_that_takes_long_gets_the_lowest_priority(worker: Worker) -> None:
    assert worker.call("os:nice", 0, seconds=30) == 5
    worker.call("time:sleep", 0.6, seconds=30)
    assert worker.call("os:nice", 0, seconds=30) == 5, "the next call is not punished"
    assert worker.call("guided_testing.priority:after", 0.6, seconds=30) == 19
    assert worker.call("guided_testing.priority:after", 0.6, seconds=30, trusted=True) == 0


def test_a_closed_worker_leaves_no_process(worker: Worker) -> None:
    pid = worker.call("os:getpid", seconds=30)
    worker.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
