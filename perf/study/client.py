"""The study's HTTP client: one streamed request, read to its end and judged by the ladder."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from study.job import Job, validator
from study.ladder import Climb, Outcome, climb
from study.records import Journal, Record

_TIMEOUT = httpx.Timeout(600, connect=30)


@dataclass
class _Reply:
    """What has been read of one stream."""

    status: int = 0
    text: str = ""
    finish_reason: str | None = None
    error: str = ""
    transport: str = ""
    first: float = 0.0
    usage: dict[str, Any] = field(default_factory=dict)

    def take(self, event: dict[str, Any], now: float) -> None:
        self.usage = event.get("usage") or self.usage
        self.error = json.dumps(event["error"]) if "error" in event else self.error
        for choice in event.get("choices", ()):
            delta = choice["delta"]
            called = "".join(c["function"].get("arguments", "") for c in delta.get("tool_calls") or ())
            piece = (delta.get("content") or "") + called
            self.first = self.first or (now if piece else 0.0)
            self.text += piece
            self.finish_reason = choice.get("finish_reason") or self.finish_reason


class Client:
    """Sends jobs to one OpenAI-compatible server and writes what came back."""

    def __init__(self, http: httpx.AsyncClient, model: str, journal: Journal) -> None:
        self._http, self._model, self._journal = http, model, journal
        self._begun = time.monotonic()

    async def send(self, job: Job) -> Record:
        """Never raises for what the server or the network did: that is what is being counted."""
        begin, reply = time.monotonic(), _Reply()
        try:
            await self._read(job, reply)
        except (httpx.HTTPError, ValueError, KeyError) as error:
            reply.transport = type(error).__name__
        record = self._record(job, reply, begin)
        self._journal.add(record)
        return record

    async def _read(self, job: Job, reply: _Reply) -> None:
        async with self._http.stream("POST", "/chat/completions", json=job.body(self._model)) as response:
            reply.status = response.status_code
            if response.status_code != 200:
                reply.error = (await response.aread()).decode(errors="replace")[:2000]
                return
            async for line in response.aiter_lines():
                if line == "data: [DONE]":
                    return
                if line.startswith("data: "):
                    reply.take(json.loads(line[6:]), time.monotonic())
        reply.transport = "EndedWithoutDone"

    def _record(self, job: Job, reply: _Reply, begin: float) -> Record:
        now, found = time.monotonic(), _judge(job, reply)
        return Record(
            experiment=job.experiment,
            arm=job.arm,
            level=job.level,
            case=job.case,
            index=job.index,
            outcome=found.outcome,
            rung=found.rung,
            status=reply.status,
            finish_reason=reply.finish_reason,
            transport=reply.transport,
            text=reply.text,
            error=reply.error,
            prompt_tokens=int(reply.usage.get("prompt_tokens", 0)),
            completion_tokens=int(reply.usage.get("completion_tokens", 0)),
            ttft_s=round(reply.first - begin, 4) if reply.first else 0.0,
            e2e_s=round(now - begin, 4),
            at_s=round(begin - self._begun, 3),
        )


def _judge(job: Job, reply: _Reply) -> Climb:
    """Fixed order: transport, truncation, refusal at the door, schema, parse, rules."""
    if reply.transport or (reply.status == 200 and reply.error) or reply.status >= 429:
        return Climb(Outcome.TRANSPORT, "transport")
    if reply.status != 200:
        return Climb(Outcome.REFUSED, "request")
    return climb(reply.finish_reason, reply.text, validator(job.schema), job.rules)


async def burst(client: Client, jobs: Iterable[Job], concurrency: int) -> list[Record]:
    """All jobs, `concurrency` at a time."""
    gate = asyncio.Semaphore(concurrency)

    async def one(job: Job) -> Record:
        async with gate:
            return await client.send(job)

    return list(await asyncio.gather(*(one(job) for job in jobs)))


@asynccontextmanager
async def connect(base_url: str, model: str, journal: Journal, pooled: bool = True) -> AsyncIterator[Client]:
    """`pooled=False` is the control that opens a connection for each request."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None if pooled else 0)
    async with httpx.AsyncClient(base_url=base_url, timeout=_TIMEOUT, limits=limits) as http:
        yield Client(http, model, journal)
