"""Compiles in worker processes: bounded, shared between equal requests, remembered."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest
from guided_grammar.compiler import Compiled, compile_spec
from guided_grammar.errors import InvalidConstraint, LimitExceeded
from guided_grammar.limits import Limits
from guided_grammar.losses import Kills
from guided_grammar.pool import CompilePool, PoolBusy, PoolClosed
from guided_grammar.spec import GrammarSpec, Kind
from guided_testing.family import children, num_threads

CHOICE = GrammarSpec(Kind.CHOICE, ["yes", "no"])


@pytest.fixture(scope="module")
def pool() -> Iterator[CompilePool]:
    pool = CompilePool(seconds=30)
    yield pool
    pool.close()


def test_the_result_is_that_of_the_compiler(pool: CompilePool) -> None:
    assert pool.compile(CHOICE) == compile_spec(CHOICE)


def test_a_refusal_is_the_compilers_own(pool: CompilePool) -> None:
    for _ in range(2):
        with pytest.raises(InvalidConstraint, match="must be a string, got int") as caught:
            pool.compile(GrammarSpec(Kind.CHOICE, ["a", 1]))
        assert caught.value.path == "/1"


def test_a_known_spec_is_answered_without_a_worker(monkeypatch: pytest.MonkeyPatch, pool: CompilePool) -> None:
    compiled = pool.compile(CHOICE)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("no worker is needed")

    monkeypatch.setattr("guided_grammar.worker.Worker.call", refuse)
    assert pool.compile(CHOICE) is compiled


def test_threads_that_ask_for_one_spec_get_one_answer(pool: CompilePool) -> None:
    spec, got = GrammarSpec(Kind.GBNF, 'root ::= "shared"'), []
    barrier = threading.Barrier(6)

    def ask() -> None:
        barrier.wait()
        got.append(pool.compile(spec))

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(compiled) for compiled in got}) == 1


def test_a_compile_over_the_clock_is_a_limit_and_the_pool_goes_on() -> None:
    pool = CompilePool(seconds=0.0)
    try:
        for text in ("a", "b"):
            with pytest.raises(LimitExceeded, match="compile milliseconds limit is 0"):
                pool.compile(GrammarSpec(Kind.CHOICE, [text]))
    finally:
        pool.close()


def test_a_compile_over_the_memory_is_a_limit() -> None:
    limits = Limits(choice_count=10**7, choice_bytes=10**9, emitted_bytes=10**9)
    pool = CompilePool(limits, seconds=60, memory_bytes=96 << 20)
    try:
        with pytest.raises(LimitExceeded, match="compile memory bytes"):
            pool.compile(GrammarSpec(Kind.CHOICE, [f"{i * 2654435761 % 2**61:040b}" for i in range(200_000)]))
        assert isinstance(pool.compile(CHOICE), Compiled)
    finally:
        pool.close()


def test_a_caller_that_finds_no_free_worker_is_told_to_come_back() -> None:
    pool = CompilePool(workers=0, wait=0.05)
    with pytest.raises(PoolBusy):
        pool.compile(CHOICE)


def test_a_worker_that_is_killed_from_outside_is_replaced_and_nobody_notices() -> None:
    pool = CompilePool(workers=1, seconds=30)
    try:
        pool.compile(CHOICE)
        slow = pool.submit(GrammarSpec(Kind.JSON_SCHEMA, {"schema": slow_schema()}))
        pid = children()[-1]
        deadline = time.monotonic() + 30
        while num_threads(pid) < 2:
            assert time.monotonic() < deadline, "the worker did not take up the job"
            time.sleep(0.005)
        os.kill(pid, signal.SIGKILL)
        assert slow.result(60) == compile_spec(GrammarSpec(Kind.JSON_SCHEMA, {"schema": slow_schema()}))
        assert pool.stats.kills == Kills(crash=1)
    finally:
        pool.close()


def test_figures_tell_what_was_asked_and_what_it_cost() -> None:
    pool = CompilePool(seconds=30)
    try:
        pool.compile(CHOICE)
        pool.compile(CHOICE)
        with pytest.raises(InvalidConstraint):
            pool.compile(GrammarSpec(Kind.CHOICE, [7]))
        stats = pool.stats
        assert (stats.outcomes.hits, stats.outcomes.misses, stats.outcomes.entries) == (1, 2, 2)
        assert stats.seconds > 0 and stats.num_waiting == 0 and stats.kills == Kills()
    finally:
        pool.close()


def slow_schema() -> dict[str, object]:
    """About half a second of work."""
    options = [{"type": "string", "pattern": f"^[a-f]{{{n}}}x"} for n in range(1, 40)]
    return {"anyOf": options}


def test_a_closed_pool_says_so() -> None:
    closed = CompilePool()
    closed.close()
    with pytest.raises(PoolClosed):
        closed.compile(CHOICE)
