"""One chat completion from body to answer."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any

from guided_engine.protocol import Event, GenerateRequest
from guided_grammar.formats import CallStyle
from guided_grammar.spec import Kind

from guided_frontend import chunks, conversation, served, translate
from guided_frontend.calls_or_document import CallsOrDocument
from guided_frontend.chunks import ChoiceReader, Envelope, MessageBuilder
from guided_frontend.errors import ApiError
from guided_frontend.observe import Record
from guided_frontend.reasoning import ReasoningSplitter
from guided_frontend.schemas import ChatRequest
from guided_frontend.served import EFFORT, THINKING_SWITCHES, ServedModel
from guided_frontend.service import Service
from guided_frontend.thinking import Thinking, calling
from guided_frontend.tool_calls import CallParser
from guided_frontend.translate import Plan
from guided_frontend.versions import fingerprint


@dataclass(frozen=True)
class Job:
    """What the engine is asked, and how its text is read. inside: the prompt ends within a reasoning block."""

    plan: Plan
    request: GenerateRequest
    inside: bool = False
    thinking: Thinking | None = None


class Chat:
    """A chat completion that was accepted: its constraint compiles and its prompt fits."""

    def __init__(self, service: Service, model: ServedModel, body: ChatRequest, job: Job, record: Record) -> None:
        self._service, self._model, self._body, self._job, self._record = service, model, body, job, record
        self._readers = [_reader(index, job, model) for index in range(body.n)]
        self._logprobs = job.plan.sampling.logprobs is not None
        self.id = f"chatcmpl-{uuid.uuid4().hex}"
        self._envelope = Envelope(self.id, int(time.time()), body.model or model.names[0], fingerprint())
        self._frame = self._envelope.frame(self._with_usage)
        self._last: list[Event] = []

    async def whole(self) -> dict[str, Any]:
        """The answer as one object."""
        builders = [MessageBuilder() for _ in self._readers]
        async with aclosing(self._events()) as batches:
            async for events in batches:
                for event in events:
                    for delta in self._feed(event):
                        builders[event.index].add(delta)
                    builders[event.index].logprobs += map(chunks.logprob, event.logprobs or ())
        choices = [self._choice(reader, builder) for reader, builder in zip(self._readers, builders, strict=True)]
        return self._envelope.whole(choices, chunks.usage(self._last))

    def _choice(self, reader: ChoiceReader, builder: MessageBuilder) -> dict[str, Any]:
        held = {"content": builder.logprobs, "refusal": None} if self._logprobs else None
        return {
            "index": reader.index, "message": builder.to_dict(), "logprobs": held, "finish_reason": reader.finish_reason
        }  # fmt: skip

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """The answer as server-sent events. Raises ApiError before the first; later an error is an event."""
        held: list[list[dict[str, Any]]] = [[] for _ in self._readers]
        started = False
        try:
            async with aclosing(self._events()) as batches:
                async for events in batches:
                    parts = [] if started else [self._opening(reader.index) for reader in self._readers]
                    for event in events:
                        parts += self._chunks(event, held[event.index])
                    started = True
                    if parts:
                        yield b"".join(map(self._frame.sse, parts))
        except ApiError as error:
            if not started:
                raise
            self._record.fail(error)
            yield chunks.sse(error.body())
            return
        yield self._closing()

    async def _events(self) -> AsyncGenerator[list[Event], None]:
        def generate(request: GenerateRequest) -> AsyncGenerator[list[Event], None]:
            return self._service.events(self._model, request, self._record.origin)

        thinking = self._job.thinking
        events = generate(self._job.request) if thinking is None else thinking.run(self._job.request, generate)
        async with self._service.gate.slot(), aclosing(events) as batches:
            async for batch in batches:
                self._record.take(batch)
                yield batch

    def _opening(self, index: int) -> dict[str, Any]:
        return chunks.chunk_choice(index, {"role": "assistant", "content": ""}, None, None)

    def _chunks(self, event: Event, held: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The choices of one event's chunks. `held`: log-probabilities whose text no chunk has shown yet."""
        held += map(chunks.logprob, event.logprobs or ())
        parts = []
        for delta in self._feed(event):
            parts.append(chunks.chunk_choice(event.index, delta.to_dict(), None, self._taken(held)))
        reason = self._readers[event.index].finish_reason
        if reason is not None:
            parts.append(chunks.chunk_choice(event.index, {}, reason, self._taken(held)))
        return parts

    def _taken(self, held: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
        taken = held[:]
        held.clear()
        return taken if self._logprobs and taken else None

    @property
    def _with_usage(self) -> bool:
        return self._body.stream_options is not None and self._body.stream_options.include_usage

    def _closing(self) -> bytes:
        if not self._with_usage:
            return chunks.DONE
        return chunks.sse(self._envelope.chunk([]) | {"usage": chunks.usage(self._last)}) + chunks.DONE

    def _feed(self, event: Event) -> Iterable[chunks.Delta]:
        if event.finish_reason is not None:
            self._last.append(event)
        return self._readers[event.index].feed(event)


async def accept(service: Service, body: ChatRequest, record: Record) -> Chat:
    """Checks everything that can be refused without the model. Raises ApiError."""
    model = served.find(service.models, body.model)
    record.model = model.names[0]
    record.budget_field = "max_tokens" if body.max_completion_tokens is None else "max_completion_tokens"
    plan = translate.plan_chat(body, model).of(record.client)
    record.constraint = plan.constraint
    checked = await service.checker.check(plan.constraint.spec, plan.constraint.field, record.client)
    record.compile_seconds = checked.seconds
    ids = await service.off_loop(partial(encode, body, plan, model))
    job = _job(body, plan, model, ids)
    num_ids = len(job.request.input_ids or ())
    service.check_fit(model, num_ids, plan.sampling.max_tokens, "messages", record.budget_field)
    return Chat(service, model, body, job, record)


def _job(body: ChatRequest, plan: Plan, model: ServedModel, ids: list[int]) -> Job:
    """Reasoning is led by us where a constraint follows it, a budget bounds it, or the model was not made for it (the
    marker is no token of its vocabulary) and may never close the block; else the model is left alone."""
    markers, shown = model.format.reasoning, model.shown_tokens
    inside = markers is not None and model.tokenizer.ends_with(ids, markers.open.strip())
    if markers is None or not (plan.thinks or inside):
        is_off = model.thinks or plan.thinks is False
        return Job(plan, plan.request(ids, shown, _no_thinking(model) if is_off else None))
    is_native = model.tokenizer.token_id(markers.close.strip()) is not None
    if is_native and plan.constraint.spec.kind is Kind.FREE and body.thinking_token_budget is None:
        return Job(plan, plan.request(ids, shown), inside)
    opened = ids if inside else ids + model.tokenizer.encode_markup(markers.open)
    thinking = Thinking(model.tokenizer, markers, body.thinking_token_budget, calling(plan.constraint.spec))
    return Job(plan, plan.request(opened, shown), True, thinking)


def _no_thinking(model: ServedModel) -> dict[int, float]:
    """The bias that keeps a reasoning model from opening a block."""
    opener = model.tokenizer.first_token(model.format.reasoning.open.strip()) if model.format.reasoning else None
    return {} if opener is None else {opener: -100.0}


def encode(body: ChatRequest, plan: Plan, model: ServedModel) -> list[int]:
    """The prompt's ids. Raises BadRequest when the template refuses the messages."""
    trusted = {
        "add_generation_prompt": True, "bos_token": model.bos, "eos_token": model.eos,
        **dict.fromkeys(THINKING_SWITCHES, bool(plan.thinks)),
    }  # fmt: skip
    if body.reasoning_effort is not None:
        trusted[EFFORT] = body.reasoning_effort
    user = {key: value for key, value in (body.chat_template_kwargs or {}).items() if key not in trusted}
    user["tools"] = conversation.declared(plan.constraint.shown) or None

    def of(messages: conversation.Messages) -> list[int]:
        return model.tokenizer.encode_chat(model.template, trusted, {**user, "messages": messages})

    return conversation.encoded(body.messages, of)


def _reader(index: int, job: Job, model: ServedModel) -> ChoiceReader:
    schemas = {tool.function.name: tool.function.parameters for tool in job.plan.constraint.shown}
    # A harmony answer is made of messages on channels even where no tool can be called.
    parses = job.plan.constraint.spec.kind is Kind.TOOLS or model.format.style is CallStyle.HARMONY
    has_document = parses and "or" in (job.plan.constraint.spec.value or {})
    reader = CallsOrDocument if has_document else CallParser
    calls = reader(model.format, schemas) if parses else None
    markers = model.format.reasoning if job.inside or job.plan.thinks or model.thinks_unasked else None
    triggers = () if calls is None else calls.triggers
    thoughts = None if markers is None else ReasoningSplitter(markers, job.inside, triggers)
    return ChoiceReader(index, calls, thoughts, _call_id)


def _call_id() -> str:
    return f"call_{uuid.uuid4().hex[:24]}"
