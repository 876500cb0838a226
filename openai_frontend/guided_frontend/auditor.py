"""Whole answers, judged once more as the client would read them, before their end is passed on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from guided_grammar import second_opinion
from guided_grammar.second_opinion import UNTOLD, Opinion
from guided_grammar.spec import GrammarSpec, Kind
from guided_grammar.worker import Worker, WorkerDied, WorkerTimeout

from guided_frontend import chunks
from guided_frontend.errors import VIOLATION, ApiError, EngineError
from guided_frontend.observe import Record
from guided_frontend.schemas import CompletionRequest, Generation

_SECONDS, _BYTES = 2.0, 2 << 30
_MOST_WAITING = 64
_ENDED = ("stop", "tool_calls")
_DATA = b"data: "


class Auditor:
    """Owns the process that judges, since a validator can take any time over a schema of the client's.

    A fault found ends the request with a 500, or an error event. What took too long, or cannot be told, passes.
    told: called with the verdict on each answer: "passed", "failed" or "untold".
    """

    def __init__(self, is_on: bool, told: Callable[[str], None]) -> None:
        """Raises ValueError when it is wanted and the validator is not installed."""
        if is_on and not second_opinion.is_available():
            raise ValueError("check_answers needs the package jsonschema-rs")
        self._is_on, self._told = is_on, told
        self._worker, self._thread = Worker(_BYTES), ThreadPoolExecutor(1, thread_name_prefix="audit")
        self._num_waiting = 0

    async def whole(
        self, record: Record, asked: Generation, work: Coroutine[Any, Any, dict[str, Any]]
    ) -> dict[str, Any]:
        """The body that `work` gives. Raises ApiError, as `work` does."""
        body = await work
        if self._watches(record, asked):
            for choice in body["choices"]:
                answer = _Answer()
                answer.add(choice, "message")
                await self._check(record, answer)
        return body

    def stream(
        self, record: Record, asked: Generation, parts: AsyncGenerator[bytes, None]
    ) -> AsyncGenerator[bytes, None]:
        """Parts of server-sent events; one that ends a choice is held back until that was judged. Raises as `parts`."""
        return self._watched(record, parts) if self._watches(record, asked) else parts

    async def _watched(self, record: Record, parts: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
        answers: dict[int, _Answer] = {}
        started = False
        async with aclosing(parts):
            async for part in parts:
                try:
                    for choice in _choices(part):
                        answer = answers.setdefault(choice["index"], _Answer())
                        answer.add(choice, "delta")
                        await self._check(record, answer)
                except ApiError as error:
                    if not started:
                        raise
                    record.fail(error)
                    yield chunks.sse(error.body())
                    return
                started = True
                yield part

    def _watches(self, record: Record, asked: Generation) -> bool:
        is_echo = isinstance(asked, CompletionRequest) and asked.echo
        return self._is_on and record.constraint.spec.kind is not Kind.FREE and not is_echo

    async def _check(self, record: Record, answer: _Answer) -> None:
        if answer.finish_reason not in _ENDED:
            return
        opinion = UNTOLD
        if self._num_waiting < _MOST_WAITING:
            self._num_waiting += 1
            try:
                loop = asyncio.get_running_loop()
                opinion = await loop.run_in_executor(self._thread, self._judge, record.constraint.spec, answer)
            finally:
                self._num_waiting -= 1
        self._told("failed" if opinion.fault else "passed" if opinion.told else "untold")
        if opinion.fault:
            raise EngineError(f"the answer violates its constraint: {opinion.fault}", label=VIOLATION)

    def _judge(self, spec: GrammarSpec, answer: _Answer) -> Opinion:
        function, given = _question(spec, answer)
        try:
            opinion: Opinion = self._worker.call(f"{second_opinion.__name__}:{function}", *given, seconds=_SECONDS)
            return opinion
        except (WorkerTimeout, WorkerDied, RuntimeError):
            return UNTOLD

    def close(self) -> None:
        self._thread.shutdown(wait=True, cancel_futures=True)
        self._worker.close()


@dataclass
class _Answer:
    """One choice as its deltas add up."""

    text: list[str] = field(default_factory=list)
    calls: list[list[str]] = field(default_factory=list)
    finish_reason: str | None = None

    def add(self, choice: Mapping[str, Any], key: str) -> None:
        message = choice.get(key) or {}
        self.text.append(choice.get("text") or message.get("content") or "")
        for call in message.get("tool_calls") or ():
            function = call["function"]
            if function.get("name"):
                self.calls.append([function["name"], ""])
            self.calls[call.get("index", -1)][1] += function.get("arguments") or ""
        self.finish_reason = choice.get("finish_reason") or self.finish_reason


def _question(spec: GrammarSpec, answer: _Answer) -> tuple[str, tuple[Any, ...]]:
    """The function of `second_opinion` to ask, and what."""
    text = "".join(answer.text)
    if spec.kind is not Kind.TOOLS:
        return "on_answer", (spec, text)
    if answer.calls or spec.value.get("or") is None:
        return "on_calls", (spec, [(name, arguments) for name, arguments in answer.calls])
    return "on_answer", (GrammarSpec.from_json(json.dumps(spec.value["or"])), text)


def _choices(part: bytes) -> Iterator[dict[str, Any]]:
    for line in part.splitlines():
        if line.startswith(_DATA + b"{"):
            yield from json.loads(line.removeprefix(_DATA)).get("choices", ())
