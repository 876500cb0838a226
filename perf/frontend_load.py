"""Streams against an OpenAI-compatible server over plain sockets: what a client sees, at little cost to the machine."""

from __future__ import annotations

import asyncio
import json
import re
import time
from dataclasses import dataclass

import grpc  # type: ignore[import-untyped]

_STAMPS = re.compile(rb'"content":"(\d+):(\d+) "')


@dataclass(frozen=True)
class Seen:
    """One request. added_ms: its first chunk's time outside the model. chunks: events of the stream that carry text."""

    status: int
    added_ms: float = 0.0
    chunks: int = 0
    seconds: float = 0.0
    retry_after: str = ""
    is_whole: bool = False


@dataclass(frozen=True)
class Target:
    """Where to ask and what."""

    port: int
    body: bytes

    @staticmethod
    def streaming(port: int) -> Target:
        body = {"messages": [{"role": "user", "content": "Hi"}], "stream": True, "max_tokens": 512}
        return Target(port, json.dumps(body).encode())


async def ask(target: Target) -> Seen:
    """One request on a connection of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
    begin = time.monotonic_ns()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {len(target.body)}\r\nconnection: close"
    writer.write(head.encode() + b"\r\n\r\n" + target.body)
    try:
        return await _read(reader, begin)
    except (OSError, asyncio.IncompleteReadError):
        return Seen(0)
    finally:
        writer.close()


async def _read(reader: asyncio.StreamReader, begin: int) -> Seen:
    head = await reader.readuntil(b"\r\n\r\n")
    status = int(head.split(b" ", 2)[1])
    if status != 200:
        after = re.search(rb"retry-after: (\d+)", head)
        return Seen(status, retry_after=after[1].decode() if after else "")
    body, first = b"", 0
    while part := await reader.read(65536):
        body += part
        if not first and (found := _STAMPS.search(body)) is not None:
            first = time.monotonic_ns()
            model = int(found[2]) - int(found[1])
    if not first:
        return Seen(0)
    added = (first - begin - model) / 1e6
    chunks = body.count(b'"content":"') - 1
    return Seen(200, added, chunks, (time.monotonic_ns() - begin) / 1e9, is_whole=b"data: [DONE]" in body)


async def floor(model_port: int, count: int) -> tuple[int, float]:
    """Messages read and processor seconds spent when nothing is done with `count` streams but reading them."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{model_port}") as channel:
        infer = channel.unary_stream("/inference.GRPCInferenceService/ModelStreamInfer")

        async def one() -> int:
            return sum([1 async for _ in infer(b"")])

        begin = time.process_time()
        read = sum(await asyncio.gather(*(one() for _ in range(count))))
        return read, time.process_time() - begin


async def together(target: Target, count: int, stagger: float = 0.0) -> list[Seen]:
    """`count` requests at once, each `stagger` seconds after the one before."""

    async def later(place: int) -> Seen:
        await asyncio.sleep(place * stagger)
        return await ask(target)

    return list(await asyncio.gather(*(later(place) for place in range(count))))
