"""Well-behaved streams beside whatever else happens: their gaps between tokens, and how each one ended."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import jsonschema

_NAMES = ("city", "code", "label", "level", "owner", "price", "state", "unit")
_TIMEOUT = 120.0


@dataclass
class Ended:
    """One answer. at: clock readings of its events. outcome: "valid", "length", "free", or what went wrong."""

    at: list[float]
    outcome: str
    status: int = 200

    @property
    def gaps(self) -> list[float]:
        return [b - a for a, b in zip(self.at, self.at[1:], strict=False)]


@dataclass
class Streams:
    """Answers of the streams so far."""

    ended: list[Ended] = field(default_factory=list)

    def gaps(self, begin: float, end: float) -> list[float]:
        """Gaps that lie wholly in a stretch of the clock."""
        pairs = [p for e in list(self.ended) for p in zip(e.at, e.at[1:], strict=False)]
        return [b - a for a, b in pairs if begin <= a and b <= end]


@contextmanager
def streaming(
    url: str, count: int, *, constrained: int, distinct: bool = False, max_tokens: int = 96
) -> Iterator[Streams]:
    """`count` streams that ask again as soon as an answer has ended, `constrained` of them for JSON.

    distinct: every request brings a schema of its own.
    """
    streams, done = Streams(), threading.Event()
    threads = [
        threading.Thread(target=_stream, args=(url, i, i < constrained, distinct, max_tokens, streams, done))
        for i in range(count)
    ]
    for thread in threads:
        thread.start()
    try:
        yield streams
    finally:
        done.set()
        for thread in threads:
            thread.join()


def schema(rng: random.Random, key: str) -> dict[str, Any]:
    """An object of five fields with bounded strings, distinct by `key`."""
    names = [*rng.sample(_NAMES, 4), key]
    kinds = (
        {"type": "string", "minLength": 3, "maxLength": rng.randint(8, 16)},
        {"type": "integer", "minimum": 0, "maximum": rng.randint(10, 9999)},
        {"enum": rng.sample(("north", "south", "east", "west", "up", "down"), 3)},
    )
    properties = {name: kinds[i % 3] for i, name in enumerate(names)}
    return {"type": "object", "properties": properties, "required": names, "additionalProperties": False}


def _stream(
    url: str, index: int, constrained: bool, distinct: bool, max_tokens: int, streams: Streams, done: threading.Event
) -> None:
    rng = random.Random(index)
    wanted, number = schema(rng, f"key{index}"), 0
    with httpx.Client(timeout=_TIMEOUT) as client:
        while not done.is_set():
            number += 1
            if distinct:
                wanted = schema(rng, f"key{index}n{number}")
            body = {
                "messages": [{"role": "user", "content": f"Write about item {index}."}],
                "max_tokens": max_tokens,
                "temperature": 1.0,
                "stream": True,
                **({"guided_json": wanted} if constrained else {}),
            }
            streams.ended.append(_ask(client, url, body, wanted if constrained else None))


def _ask(client: httpx.Client, url: str, body: dict[str, Any], wanted: dict[str, Any] | None) -> Ended:
    at, text, finish, error = list[float](), "", "", ""
    try:
        with client.stream("POST", f"{url}/chat/completions", json=body) as answer:
            if answer.status_code != 200:
                message = json.loads(answer.read())["error"]["message"]
                return Ended(at, message, answer.status_code)
            for line in answer.iter_lines():
                if not line.startswith("data: {"):
                    continue
                event = json.loads(line[6:])
                if "error" in event:
                    error = event["error"]["message"]
                    continue
                at.append(time.monotonic())
                for choice in event["choices"]:
                    text += choice["delta"].get("content") or ""
                    finish = choice["finish_reason"] or finish
    except httpx.TransportError as failure:
        return Ended(at, f"{type(failure).__name__}: {failure}", 0)
    if error:
        return Ended(at, error, 500)
    if wanted is None:
        return Ended(at, "free")
    return Ended(at, _judged(text, wanted) if finish == "stop" else finish)


def _judged(text: str, wanted: dict[str, Any]) -> str:
    try:
        jsonschema.validate(json.loads(text), wanted)
    except (ValueError, jsonschema.ValidationError) as error:
        return f"invalid: {error}"
    return "valid"
