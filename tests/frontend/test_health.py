from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import httpx
import pytest
from guided_frontend.contexts import Contexts
from guided_frontend.errors import STUCK, Unavailable
from guided_frontend.health import Health
from guided_testing.scripted_backend import Answer, ScriptedBackend

from .conftest import Frontend

SILENT = Answer(pause=60.0)


def run(body: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(body(), 10))  # type: ignore[arg-type]


def test_a_model_that_never_fell_silent_is_not_probed() -> None:
    async def body() -> None:
        backend = ScriptedBackend()
        assert await Health(backend, Contexts()).ready("m") and backend.requests == []

    run(body)


def test_a_model_that_fell_silent_is_not_ready_until_a_probe_comes_back() -> None:
    async def body() -> None:
        backend = ScriptedBackend([SILENT, Answer()])
        health = Health(backend, Contexts(), probe_seconds=0.05)
        health.suspect("m")
        assert not await health.ready("m")
        assert backend.cancelled == 1 and backend.running == 0
        assert not await health.ready("m") and len(backend.requests) == 1
        health._suspects["m"] -= 60.0
        assert await health.ready("m") and await health.ready("m")
        assert len(backend.requests) == 2

    run(body)


@pytest.mark.parametrize("is_stream", [False, True])
def test_silence_during_a_request_leads_to_a_probe(frontend: Frontend, is_stream: bool) -> None:
    frontend.answers(Answer(error=Unavailable("silent", label=STUCK), error_after=1), Answer())
    frontend.ask(stream=is_stream)
    assert httpx.get(f"{frontend.url}/health/ready").status_code == 200
    assert [request.sampling.max_tokens for request in frontend.backend.requests] == [None, 1]
