"""Constraints are checked in processes that can be lost, in turns of the clients, and only where there are any."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from guided_frontend.compiling import ConstraintChecker
from guided_frontend.errors import BadRequest, Busy, Unavailable
from guided_grammar.limits import Limits
from guided_grammar.losses import Kills
from guided_grammar.spec import FREE, GrammarSpec, Kind
from guided_grammar.worker import Worker
from guided_testing.family import children

from .conftest import Frontend


@pytest.fixture
def checker() -> Iterator[ConstraintChecker]:
    checker = ConstraintChecker(Limits(), workers=1, timeout=30.0)
    yield checker
    checker.close()


def choice(text: str) -> GrammarSpec:
    return GrammarSpec(Kind.CHOICE, [text])


class Turns:
    """Stands in for the work of a process: holds the first call, notes the order of the others."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.order, self.begun, self.go = list[str](), threading.Event(), threading.Event()
        genuine = Worker.call

        def call(worker: Worker, function: str, spec: GrammarSpec, *rest: Any, seconds: float) -> Any:
            self.order.append(spec.value[0])
            self.begun.set()
            assert self.go.wait(10)
            return genuine(worker, function, spec, *rest, seconds=seconds)

        monkeypatch.setattr(Worker, "call", call)


async def ask(checker: ConstraintChecker, text: str, client: str) -> None:
    await checker.check(choice(text), "guided_choice", client)


def test_clients_that_wait_take_turns(checker: ConstraintChecker, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns(monkeypatch)

    async def run() -> None:
        tasks = [asyncio.create_task(ask(checker, f"many{i}", "many")) for i in range(4)]
        while not turns.begun.is_set():
            await asyncio.sleep(0.01)
        tasks.append(asyncio.create_task(ask(checker, "one0", "one")))
        while checker.stats.num_waiting < 4:
            await asyncio.sleep(0.01)
        turns.go.set()
        await asyncio.gather(*tasks)

    asyncio.run(run())
    assert turns.order == ["many0", "many1", "one0", "many2", "many3"]


def test_a_client_that_leaves_does_not_end_a_compile_that_another_waits_for(
    checker: ConstraintChecker, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = Turns(monkeypatch)

    async def run() -> None:
        first = asyncio.create_task(ask(checker, "held", "a"))
        leaving, staying = (asyncio.create_task(ask(checker, "shared", name)) for name in ("b", "c"))
        while checker.stats.num_waiting < 1:
            await asyncio.sleep(0.01)
        leaving.cancel()
        await asyncio.sleep(0.01)
        turns.go.set()
        await asyncio.gather(first, staying)
        assert leaving.cancelled()

    asyncio.run(run())
    assert turns.order == ["held", "shared"]


def test_one_that_finds_no_worker_in_time_is_told_to_come_back(
    checker: ConstraintChecker, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = Turns(monkeypatch)
    checker._pool.wait = 0.05

    async def run() -> None:
        first = asyncio.create_task(ask(checker, "held", "a"))
        while not turns.begun.is_set():
            await asyncio.sleep(0.01)
        with pytest.raises(Busy, match=r"no worker was free for 0\.05 s"):
            await ask(checker, "late", "a")
        turns.go.set()
        await first

    asyncio.run(run())


def test_a_known_constraint_took_no_time(checker: ConstraintChecker) -> None:
    async def run() -> list[float]:
        return [(await checker.check(choice("a"), "guided_choice")).seconds for _ in range(2)]

    first, second = asyncio.run(run())
    assert first > 0 and second == 0


def test_a_refusal_names_the_field_the_value_and_the_limit(checker: ConstraintChecker) -> None:
    with pytest.raises(BadRequest, match=r"guided_regex.*: regex bytes limit is 4096, got 4097") as caught:
        asyncio.run(checker.check(GrammarSpec(Kind.REGEX, "a" * 4097), "guided_regex"))
    assert caught.value.param == "guided_regex"


def test_a_worker_that_is_killed_is_replaced_and_the_request_is_served(checker: ConstraintChecker) -> None:
    asyncio.run(ask(checker, "before", ""))
    for pid in children():
        os.kill(pid, signal.SIGKILL)
    asyncio.run(ask(checker, "after", ""))
    assert checker.stats.kills in (Kills(), Kills(crash=1))


def test_a_closed_checker_says_that_the_server_ends(checker: ConstraintChecker) -> None:
    checker.close()
    with pytest.raises(Unavailable, match="shutting down"):
        asyncio.run(ask(checker, "late", ""))


def test_f82_a_free_spec_reaches_no_worker(checker: ConstraintChecker) -> None:
    asyncio.run(checker.check(FREE, ""))
    assert checker.stats.outcomes.misses == 0 and checker.stats.seconds == 0


def figures(frontend: Frontend) -> dict[str, float]:
    lines = httpx.get(f"{frontend.url}/metrics").text.splitlines()
    named = (line.rpartition(" ") for line in lines if line.startswith("guided_frontend_grammar_"))
    return {name: float(value) for name, _, value in named}


def test_f82_counters_prove_that_free_requests_leave_the_compiler_alone(frontend: Frontend) -> None:
    # what the application compiles at its start is done by one worker after the other
    while figures(frontend)["guided_frontend_grammar_cache_entries"] < 4:
        time.sleep(0.05)
    before = figures(frontend)
    for _ in range(3):
        assert frontend.ask().status_code == 200
    assert figures(frontend) == before
    assert frontend.ask(guided_choice=["something new"]).status_code == 200
    assert figures(frontend) != before


def test_d50_the_versions_of_the_libraries_are_exported(frontend: Frontend) -> None:
    (line,) = (
        line
        for line in httpx.get(f"{frontend.url}/metrics").text.splitlines()
        if line.startswith("guided_frontend_versions{")
    )
    assert 'xgrammar="0.2.9"' in line and line.endswith("} 1.0")
