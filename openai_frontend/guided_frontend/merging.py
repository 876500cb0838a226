"""Several generations of one request as one stream of events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from guided_engine.protocol import Event

Batches = AsyncGenerator[list[Event], None]


async def merged(sources: Sequence[Batches]) -> Batches:
    """Batches of all sources as they come. The first error ends, and closing it closes, all of them."""
    if len(sources) == 1:
        async with aclosing(sources[0]) as batches:
            async for batch in batches:
                yield batch
        return
    arrived: asyncio.Queue[list[Event] | None] = asyncio.Queue()
    tasks = [asyncio.ensure_future(_pour(source, arrived)) for source in sources]
    left = len(tasks)
    try:
        while left:
            item = await arrived.get()
            if item is not None:
                yield item
                continue
            left -= 1
            _raise_of(tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _pour(source: Batches, arrived: asyncio.Queue[list[Event] | None]) -> None:
    try:
        async with aclosing(source) as batches:
            async for batch in batches:
                arrived.put_nowait(batch)
    finally:
        arrived.put_nowait(None)


def _raise_of(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        if task.done() and not task.cancelled() and task.exception() is not None:
            task.result()
