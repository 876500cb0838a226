"""Whether a model answers. The server calls a hung model ready, so one that fell silent must prove itself."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing

from guided_engine.protocol import GenerateRequest, SamplingParams

from guided_frontend.backend import Backend, Origin
from guided_frontend.contexts import Contexts
from guided_frontend.errors import ApiError

_PROBE = GenerateRequest(None, (0,), SamplingParams(max_tokens=1, temperature=0.0), stream=True)
_PROBE_SECONDS = 10.0
_REMEMBERED_SECONDS = 2.0


class Health:
    """`suspect` a model after silence; it counts as ready again when a probe of one token has come back."""

    def __init__(self, backend: Backend, contexts: Contexts, probe_seconds: float = _PROBE_SECONDS) -> None:
        self._backend, self._contexts, self._probe_seconds = backend, contexts, probe_seconds
        self._suspects: dict[str, float] = {}
        self._probing = asyncio.Lock()

    def suspect(self, model: str) -> None:
        self._suspects.setdefault(model, float("-inf"))

    async def ready(self, model: str) -> bool:
        """Never raises. A suspect is probed, at most every two seconds and by one caller at a time."""
        if not await self._backend.ready(model):
            return False
        async with self._probing:
            probed_at = self._suspects.get(model)
            if probed_at is None:
                return True
            if time.monotonic() - probed_at < _REMEMBERED_SECONDS:
                return False
            if await self._answers(model):
                del self._suspects[model]
                return True
            self._suspects[model] = time.monotonic()
            return False

    async def _answers(self, model: str) -> bool:
        try:
            await asyncio.wait_for(self._probe(model), self._probe_seconds)
        except (ApiError, asyncio.TimeoutError):
            return False
        return True

    async def _probe(self, model: str) -> None:
        async with aclosing(self._backend.generate(model, _PROBE, Origin("probe"))) as batches:
            async for events in batches:
                self._contexts.learn(model, events)
