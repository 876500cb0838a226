"""What every request shares: the backend, the models, and the bounds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Executor
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar

from guided_engine.protocol import Event, GenerateRequest

from guided_frontend.backend import Backend, Origin
from guided_frontend.compiling import ConstraintChecker
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

    async def events(
        self, model: ServedModel, request: GenerateRequest, origin: Origin
    ) -> AsyncGenerator[list[Event], None]:
        """The generation, within the deadline. Raises ApiError."""
        deadline = time.monotonic() + self.request_timeout
        try:
            async with aclosing(self.backend.generate(model.triton_name, request, origin)) as batches:
                async for events in batches:
                    yield events
                    if time.monotonic() > deadline:
                        raise Timeout(f"the request took more than {self.request_timeout:g} s", label="deadline")
        except ApiError as error:
            if error.label == STUCK:
                self.health.suspect(model.triton_name)
            raise

    async def off_loop(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self.threads, work)


def check_fit(num_ids: int, max_tokens: int | None, model: ServedModel, field: str) -> None:
    """Raises BadRequest with both numbers when the prompt, which is in `field`, and the answer exceed the context."""
    wanted = max_tokens or 1
    if num_ids == 0:
        raise BadRequest(f"{field} holds no tokens", field)
    if model.most_context is not None and num_ids + wanted > model.most_context:
        raise BadRequest(
            f"the context holds {model.most_context} tokens: the prompt has {num_ids} and max_tokens asks for {wanted}",
            field if num_ids >= model.most_context else "max_tokens",
        )
