"""Answers that end when the client goes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from typing import Any, TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from guided_frontend.observe import Record

Result = TypeVar("Result")


class ClientGone(Exception):
    """The client closed its connection; nobody reads the answer."""


async def until_gone(receive: Receive, work: Coroutine[Any, Any, Result]) -> Result:
    """The result of `work`, which is cancelled when the client disconnects. Raises ClientGone then."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_disconnected(receive))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientGone
        return task.result()
    finally:
        gone.cancel()
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class EventStream(Response):
    """Server-sent events. `first` was already taken from `rest`, so that early errors still got a status."""

    media_type = "text/event-stream"

    def __init__(self, first: bytes, rest: AsyncGenerator[bytes, None], record: Record) -> None:
        super().__init__(headers={"cache-control": "no-cache", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._first, self._rest, self._record = first, rest, record

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await until_gone(receive, self._send(send))
        except (ClientGone, OSError):
            self._record.is_gone = True
        finally:
            await self._rest.aclose()

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self._first, "more_body": True})
        async for part in self._rest:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
