"""One text completion from body to answer: one or several prompts, each with n choices."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from guided_engine.protocol import Event, GenerateRequest, TokenLogprob

from guided_frontend import chunks, served, translate
from guided_frontend.errors import ApiError, BadRequest
from guided_frontend.merging import merged
from guided_frontend.observe import Record
from guided_frontend.schemas import CompletionRequest
from guided_frontend.served import ServedModel
from guided_frontend.service import Service
from guided_frontend.versions import fingerprint

_MOST_PROMPTS = 128


@dataclass
class _Choice:
    """One choice as it arrives. `offset`: characters before its next token, counted over echo and text."""

    text: list[str] = field(default_factory=list)
    tokens: list[TokenLogprob] = field(default_factory=list)
    finish_reason: str | None = None
    offset: int = 0


class Text:
    """A text completion that was accepted."""

    def __init__(
        self,
        service: Service,
        model: ServedModel,
        body: CompletionRequest,
        requests: list[GenerateRequest],
        record: Record,
    ) -> None:
        self._service, self._model, self._body, self._record = service, model, body, record
        self._requests = requests
        self._echo = [_echoed(model, r) if body.echo else "" for r in requests for _ in range(body.n)]
        self._choices = [_Choice(offset=len(echo)) for echo in self._echo]
        self._last: list[list[Event]] = [[] for _ in requests]
        self._shared = {
            "id": f"cmpl-{uuid.uuid4().hex}", "object": "text_completion", "created": int(time.time()),
            "model": body.model or model.names[0], "system_fingerprint": fingerprint(),
        }  # fmt: skip

    async def whole(self) -> dict[str, Any]:
        """The answer as one object."""
        async with aclosing(self._events()) as batches:
            async for events in batches:
                for event in events:
                    choice = self._choices[event.index]
                    choice.text.append(event.text)
                    choice.tokens += event.logprobs or ()
                    choice.finish_reason = event.finish_reason or choice.finish_reason
        choices = [
            self._choice(index, echo + "".join(choice.text), choice.tokens, choice.finish_reason)
            for index, (echo, choice) in enumerate(zip(self._echo, self._choices, strict=True))
        ]
        return {**self._shared, "choices": choices, "usage": self._usage()}

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """The answer as server-sent events. Raises ApiError before the first; later an error is an event."""
        started = False
        with_usage = self._body.stream_options is not None and self._body.stream_options.include_usage
        extra: dict[str, Any] = {"usage": None} if with_usage else {}
        try:
            async with aclosing(self._events()) as batches:
                async for events in batches:
                    choices = [] if started else [self._choice(i, e, (), None) for i, e in enumerate(self._echo) if e]
                    choices += [self._choice(e.index, e.text, e.logprobs or (), e.finish_reason) for e in events]
                    started = True
                    yield b"".join(chunks.sse({**self._shared, "choices": [c], **extra}) for c in choices)
        except ApiError as error:
            if not started:
                raise
            self._record.fail(error)
            yield chunks.sse(error.body())
            return
        if with_usage:
            yield chunks.sse({**self._shared, "choices": [], "usage": self._usage()})
        yield chunks.DONE

    def _choice(
        self, index: int, text: str, tokens: Sequence[TokenLogprob], finish_reason: str | None
    ) -> dict[str, Any]:
        held = None if self._body.logprobs is None else self._logprobs(self._choices[index], tokens)
        return {"text": text, "index": index, "logprobs": held, "finish_reason": finish_reason}

    @staticmethod
    def _logprobs(choice: _Choice, tokens: Sequence[TokenLogprob]) -> dict[str, Any]:
        """The older API's parallel lists."""
        entries = [chunks.logprob(token) for token in tokens]
        offsets = []
        for entry in entries:
            offsets.append(choice.offset)
            choice.offset += len(entry["token"])
        return {
            "tokens": [entry["token"] for entry in entries],
            "token_logprobs": [entry["logprob"] for entry in entries],
            "top_logprobs": [{top["token"]: top["logprob"] for top in entry["top_logprobs"]} for entry in entries],
            "text_offset": offsets,
        }

    def _usage(self) -> dict[str, Any]:
        found = [chunks.usage(last) for last in self._last]
        names = ("prompt_tokens", "completion_tokens", "total_tokens")
        return {name: sum(usage[name] for usage in found) for name in names}

    async def _events(self) -> AsyncGenerator[list[Event], None]:
        sources = [self._of_prompt(place, request) for place, request in enumerate(self._requests)]
        async with self._service.gate.slot(), aclosing(merged(sources)) as batches:
            async for batch in batches:
                self._record.take(batch)
                yield batch

    async def _of_prompt(self, place: int, request: GenerateRequest) -> AsyncGenerator[list[Event], None]:
        """Events of one prompt, with the index of the choice in the whole answer."""
        first = place * self._body.n
        events = self._service.events(self._model, request, self._record.origin)
        async with aclosing(events) as batches:
            async for batch in batches:
                self._last[place] += [event for event in batch if event.finish_reason is not None]
                yield [replace(event, index=first + event.index) for event in batch]


async def accept(service: Service, body: CompletionRequest, record: Record) -> Text:
    """Checks everything that can be refused without the model. Raises ApiError."""
    model = served.find(service.models, body.model)
    record.model = model.names[0]
    plan = translate.plan_text(body).of(record.client)
    record.constraint = plan.constraint
    if body.echo and body.logprobs is not None:
        raise BadRequest("echo cannot be combined with logprobs: those of the prompt are not computed", "echo")
    checked = await service.checker.check(plan.constraint.spec, plan.constraint.field, record.client)
    record.compile_seconds = checked.seconds
    prompts = await service.off_loop(partial(_encode, body, model))
    for ids in prompts:
        service.check_fit(model, len(ids), plan.sampling.max_tokens, "prompt", "max_tokens")
    return Text(service, model, body, [plan.request(ids) for ids in prompts], record)


def _encode(body: CompletionRequest, model: ServedModel) -> list[list[int]]:
    """The ids of every prompt. Texts are the client's own markup, so markup tokens in them count as such."""
    prompt = body.prompt
    items: list[Any] = [prompt] if isinstance(prompt, str) or (prompt and isinstance(prompt[0], int)) else list(prompt)
    if not 1 <= len(items) <= _MOST_PROMPTS:
        raise BadRequest(f"prompt must hold 1 to {_MOST_PROMPTS} prompts, got {len(items)}", "prompt")
    prompts = [model.tokenizer.encode_text(item) if isinstance(item, str) else item for item in items]
    if any(not 0 <= i < model.tokenizer.size for ids in prompts for i in ids):
        raise BadRequest(f"prompt: token ids must lie from 0 to {model.tokenizer.size - 1}", "prompt")
    return prompts


def _echoed(model: ServedModel, request: GenerateRequest) -> str:
    return model.tokenizer.decode(request.input_ids or ())
