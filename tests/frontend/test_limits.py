from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from guided_frontend.errors import Busy, Unavailable
from guided_frontend.limits import Gate, RateLimit
from guided_frontend.served import ServedModel
from guided_frontend.settings import Settings
from guided_testing.scripted_backend import Answer, ScriptedBackend

from .conftest import served_by


def run(body: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(body(), 10))  # type: ignore[arg-type]


def test_the_gate_lets_in_by_order_of_arrival_and_never_more_than_its_slots() -> None:
    async def body() -> None:
        gate, order, inside = Gate(2, 10, 5.0), list[int](), 0

        async def visit(number: int) -> None:
            nonlocal inside
            async with gate.slot():
                inside += 1
                assert inside <= 2
                order.append(number)
                await asyncio.sleep(0.01)
                inside -= 1

        await asyncio.gather(*(visit(number) for number in range(8)))
        assert order == list(range(8)) and gate.num_queued == 0

    run(body)


def test_a_full_queue_refuses_at_once_and_a_long_wait_in_the_end() -> None:
    async def body() -> None:
        gate = Gate(1, 1, 0.05)
        async with gate.slot():
            waiting = asyncio.ensure_future(gate.slot().__aenter__())
            await asyncio.sleep(0)
            with pytest.raises(Busy):
                await gate.slot().__aenter__()
            with pytest.raises(Unavailable):
                await waiting
        async with gate.slot():
            assert gate.num_queued == 0

    run(body)


@pytest.mark.parametrize("ticks", range(4))
def test_a_waiter_that_is_cancelled_loses_no_slot(ticks: int) -> None:
    async def body() -> None:
        gate = Gate(1, 5, 5.0)
        first = gate.slot()
        await first.__aenter__()
        waiting = asyncio.ensure_future(gate.slot().__aenter__())
        await asyncio.sleep(0)
        await first.__aexit__(None, None, None)
        for _ in range(ticks):
            await asyncio.sleep(0)
        if not waiting.done():
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            async with gate.slot():
                pass

    run(body)


def test_a_rate_is_per_client_and_refills_evenly() -> None:
    rate, refused = RateLimit(6), list[tuple[float, int | None]]()
    for now in (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 5.0, 10.0, 10.0):
        try:
            rate.take("a", now)
        except Busy as error:
            refused.append((now, error.retry_after))
    assert refused == [(0.0, 10), (5.0, 5), (10.0, 10)]
    rate.take("b", 10.0)
    RateLimit(0).take("a", 0.0)


def test_a_client_over_its_rate_is_answered_429_with_retry_after(settings: Settings, model: ServedModel) -> None:
    with served_by(replace(settings, rate_limit=2), ScriptedBackend(), model) as frontend:
        answers = [frontend.ask() for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert 0 < int(answers[2].headers["retry-after"]) <= 60
        assert frontend.http.get("/health").status_code == 200


def test_other_origins_are_let_in_only_where_they_are_configured(settings: Settings, model: ServedModel) -> None:
    asked = {"origin": "https://a.example", "access-control-request-method": "POST"}
    with served_by(replace(settings, cors_origins=("https://a.example",)), ScriptedBackend(), model) as frontend:
        answer = frontend.http.options("/v1/chat/completions", headers=asked)
        assert answer.headers["access-control-allow-origin"] == "https://a.example"
    with served_by(settings, ScriptedBackend(), model) as frontend:
        answer = frontend.http.get("/v1/models", headers=asked)
        assert "access-control-allow-origin" not in answer.headers


def test_overload_is_answered_429_with_retry_after_while_accepted_requests_finish(
    settings: Settings, model: ServedModel
) -> None:
    backend = ScriptedBackend([Answer(pause=0.2)])
    few = replace(settings, max_concurrent=2, max_queued=2)
    with served_by(few, backend, model) as frontend, ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda _: frontend.ask(), range(10)))
    statuses = [answer.status_code for answer in answers]
    assert statuses.count(200) >= 4 and set(statuses) == {200, 429}
    assert all("retry-after" in a.headers for a in answers if a.status_code == 429)
    assert backend.running == 0


def test_a_request_past_its_deadline_is_a_408_and_cancelled(settings: Settings, model: ServedModel) -> None:
    backend = ScriptedBackend([Answer(("x",) * 100, pause=0.05)])
    with served_by(replace(settings, request_timeout=0.2), backend, model) as frontend:
        start = time.monotonic()
        answer = frontend.ask()
        assert answer.status_code == 408 and time.monotonic() - start < 2
    assert backend.cancelled == 1
