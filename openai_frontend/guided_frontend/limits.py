"""Bounds on what is taken in: body size, and how many generations run and wait."""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.requests import Request

from guided_frontend.errors import OVERLOAD, Busy, TooLarge, Unavailable

_CLIENTS = 10_000


async def read_body(request: Request, limit: int) -> bytes:
    """The whole body. Raises TooLarge past `limit` bytes without reading on."""
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit:
        raise TooLarge(f"the body holds {declared} bytes, the limit is {limit}")
    parts = bytearray()
    async for part in request.stream():
        parts += part
        if len(parts) > limit:
            raise TooLarge(f"the body holds more than {limit} bytes, which is the limit")
    return bytes(parts)


class RateLimit:
    """At most `per_minute` requests of one client in any minute, as a bucket that refills evenly; 0 is no limit."""

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._spent: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str, now: float) -> None:
        """Raises Busy with the seconds after which one more request is let in. `now`: seconds of any steady clock."""
        if not self._per_minute:
            return
        spent, at = self._spent.pop(client, (0.0, now))
        spent = max(0.0, spent - (now - at) * self._per_minute / 60)
        allowed = spent + 1 <= self._per_minute
        self._spent[client] = (spent + allowed, now)
        if len(self._spent) > _CLIENTS:
            self._spent.popitem(last=False)
        if not allowed:
            refusal = Busy(f"more than {self._per_minute} requests per minute", label=OVERLOAD)
            refusal.retry_after = math.ceil((spent + 1 - self._per_minute) * 60 / self._per_minute)
            raise refusal


class Gate:
    """At most `running` generations at once and `waiting` queued, in order of arrival."""

    def __init__(self, running: int, waiting: int, timeout: float) -> None:
        self._free, self._waiting, self._timeout = running, waiting, timeout
        self._queue: deque[asyncio.Future[None]] = deque()

    @property
    def num_queued(self) -> int:
        return len(self._queue)

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Raises Busy when the queue is full, Unavailable after `timeout` seconds in it."""
        await self._enter()
        try:
            yield
        finally:
            self._leave()

    async def _enter(self) -> None:
        if self._free > 0:
            self._free -= 1
            return
        if len(self._queue) >= self._waiting:
            raise Busy(f"{len(self._queue)} requests are already waiting; try again", label=OVERLOAD)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            await asyncio.wait_for(asyncio.shield(turn), self._timeout)
        except asyncio.TimeoutError:
            self._give_back(turn)
            raise Unavailable(f"no slot became free within {self._timeout:g} s", label=OVERLOAD) from None
        except asyncio.CancelledError:
            self._give_back(turn)
            raise

    def _give_back(self, turn: asyncio.Future[None]) -> None:
        """A waiter that leaves passes on the slot that it was given in the same instant."""
        if turn.done():
            self._leave()
        else:
            self._queue.remove(turn)

    def _leave(self) -> None:
        if self._queue:
            self._queue.popleft().set_result(None)
        else:
            self._free += 1
