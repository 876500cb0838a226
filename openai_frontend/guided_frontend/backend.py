"""The seam between the HTTP side and whatever generates: a Triton server, or a fake in tests."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from guided_engine.protocol import Event, GenerateRequest


@dataclass(frozen=True)
class Origin:
    """Where a generation comes from. trace: W3C trace context headers, for a server that records traces."""

    request_id: str
    trace: Mapping[str, str] = field(default_factory=dict)


class Backend(Protocol):
    """One client of one server. All methods run on the event loop."""

    def generate(self, model: str, request: GenerateRequest, origin: Origin) -> AsyncGenerator[list[Event], None]:
        """Events of one generation, in order, until every choice has its finish_reason.

        Read it to its end; closing it earlier cancels the generation. Raises ApiError.
        """

    async def parameters(self, model: str) -> Mapping[str, str]:
        """String parameters of the model's configuration. Raises ApiError when the server cannot be reached."""

    async def versions(self) -> Mapping[str, str]:
        """Name and version of the server, empty while it cannot be reached."""

    async def ready(self, model: str) -> bool:
        """Whether the server is up and serves `model`. Never raises."""

    async def close(self) -> None:
        """Gives up the connection."""
