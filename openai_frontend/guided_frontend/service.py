"""What every request shares: the backend, the models, and the bounds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Executor
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar

from guided_engine.protocol import Event, GenerateRequest, RequestError, check_context

from guided_frontend.backend import Backend, Origin
from guided_frontend.compiling import ConstraintChecker
from guided_frontend.contexts import Contexts
from guided_frontend.errors import STUCK, ApiError, BadRequest, Timeout
from guided_frontend.health import Health
from guided_frontend.limits import Gate
from guided_frontend.served import ServedModel

Result = TypeVar("Result")


@dataclass(frozen=True)
class Service:
    """`threads` renders and tokenises off the event loop."""

    backend: Backend
    models: tuple[ServedModel, ...]
    checker: ConstraintChecker
    gate: Gate
    health: Health
    threads: Executor
    request_timeout: float
    contexts: Contexts

    async def events(
        self, model: ServedModel, request: GenerateRequest, origin: Origin
    ) -> AsyncGenerator[list[Event], None]:
        """The generation, within the deadline. Raises ApiError."""
        deadline = time.monotonic() + self.request_timeout
        try:
            async with aclosing(self.backend.generate(model.triton_name, request, origin)) as batches:
                async for events in batches:
                    self.contexts.learn(model.triton_name, events)
                    yield events
                    if time.monotonic() > deadline:
                        raise Timeout(f"the request took more than {self.request_timeout:g} s", label="deadline")
        except ApiError as error:
            if error.label == STUCK:
                self.health.suspect(model.triton_name)
            raise

    async def off_loop(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self.threads, work)

    def check_fit(self, model: ServedModel, num_ids: int, max_tokens: int | None, prompt: str, budget: str) -> None:
        """Raises BadRequest with both numbers where prompt and answer pass the context.

        prompt, budget: the request's fields that hold the prompt and the bound on the answer.
        """
        if num_ids == 0:
            raise BadRequest(f"{prompt} holds no tokens", prompt)
        context = self.contexts.of(model)
        if context is None:
            return
        try:
            check_context(context, num_ids, max_tokens, prompt, budget)
        except RequestError as error:
            raise BadRequest(error.message, error.param) from None
