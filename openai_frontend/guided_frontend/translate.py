"""Requests to what the engine is asked. Pure: no clock, no network, no event loop."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from guided_engine.protocol import GenerateRequest, RequestError, SamplingParams
from guided_grammar.spec import Kind

from guided_frontend import constraint
from guided_frontend.constraint import Constraint
from guided_frontend.errors import BadRequest
from guided_frontend.schemas import ChatRequest, CompletionRequest, Generation, Message, Tool
from guided_frontend.served import ServedModel


@dataclass(frozen=True)
class Plan:
    """Everything decided about a request before its prompt is rendered."""

    constraint: Constraint
    sampling: SamplingParams
    thinks: bool = False

    def request(self, ids: Sequence[int], bias: Mapping[int, float] | None = None) -> GenerateRequest:
        """The engine's request; always streamed, so that a stuck engine shows as silence. `bias`: ours, over theirs."""
        sampling = replace(self.sampling, logit_bias={**self.sampling.logit_bias, **bias}) if bias else self.sampling
        text = "" if self.constraint.spec.kind is Kind.FREE else self.constraint.spec.to_json()
        return GenerateRequest(None, tuple(ids), sampling, text, stream=True)


def plan_chat(body: ChatRequest, model: ServedModel) -> Plan:
    """Raises BadRequest for fields that contradict each other or that this model cannot honour."""
    wanted = constraint.of_chat(body, model.format, model.shows_tools)
    if body.top_logprobs is not None and not body.logprobs:
        raise BadRequest("top_logprobs needs logprobs: true", "top_logprobs")
    budgets = {b for b in (body.max_tokens, body.max_completion_tokens) if b is not None}
    if len(budgets) > 1:
        raise BadRequest("max_tokens and max_completion_tokens differ; give one of them", "max_completion_tokens")
    thinks = _thinks(body, model)
    logprobs = (body.top_logprobs or 0) if body.logprobs else None
    return Plan(wanted, _sampling(body, wanted, budgets.pop() if budgets else None, logprobs), thinks)


def plan_text(body: CompletionRequest) -> Plan:
    """As `plan_chat`, for a text completion."""
    wanted = constraint.of_text(body)
    return Plan(wanted, _sampling(body, wanted, body.max_tokens or 16, body.logprobs))


def _thinks(body: ChatRequest, model: ServedModel) -> bool:
    """Off unless asked for; of several spellings the more particular one wins."""
    effort = None if body.reasoning_effort is None else body.reasoning_effort != "none"
    spellings = {
        "chat_template_kwargs": (body.chat_template_kwargs or {}).get("enable_thinking"),
        "think": body.think,
        "reasoning_effort": effort,
    }
    for field, told in spellings.items():
        if told and not model.thinks:
            raise BadRequest(f"{field} asks for reasoning, which this model does not do", field)
        if told is not None:
            return bool(told)
    return False


def _sampling(body: Generation, wanted: Constraint, max_tokens: int | None, logprobs: int | None) -> SamplingParams:
    stop = [body.stop] if isinstance(body.stop, str) else list(body.stop or ())
    if stop and wanted.spec.kind is not Kind.FREE:
        raise BadRequest(f"stop cannot be combined with {wanted.field}: it could cut the document", "stop")
    fields = {
        "max_tokens": max_tokens, "temperature": body.temperature, "top_p": body.top_p, "top_k": max(body.top_k, 0),
        "min_p": body.min_p, "seed": body.seed, "n": body.n, "stop": stop, "logprobs": logprobs,
        "frequency_penalty": body.frequency_penalty, "presence_penalty": body.presence_penalty,
        "repetition_penalty": body.repetition_penalty, "logit_bias": body.logit_bias,
    }  # fmt: skip
    try:
        return SamplingParams.from_json(json.dumps(fields))
    except RequestError as error:
        raise BadRequest(error.message, error.param) from None


def template_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages as chat templates expect them: text contents, arguments as objects, absent keys absent."""
    return [_message(place, message) for place, message in enumerate(messages)]


def template_tools(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Tools as the client declared them, without what only steers decoding (`strict`)."""
    return [tool.model_dump(exclude_none=True, exclude={"function": {"strict"}}) for tool in tools]


def _message(place: int, message: Message) -> dict[str, Any]:
    fields: dict[str, Any] = {"role": "system" if message.role == "developer" else message.role}
    fields["content"] = _text(message) or message.refusal or ""
    if message.role == "tool" and message.tool_call_id is None:
        raise BadRequest(f"messages[{place}].tool_call_id is required", f"messages[{place}].tool_call_id")
    reasoning = message.reasoning_content or message.reasoning
    optional = {"name": message.name, "tool_call_id": message.tool_call_id, "reasoning_content": reasoning}
    fields |= {key: value for key, value in optional.items() if value is not None}
    if message.tool_calls:
        fields["tool_calls"] = [
            {
                "id": c.id,
                "type": c.type,
                "function": {"name": c.function.name, "arguments": _arguments(c.function.arguments)},
            }
            for c in message.tool_calls
        ]
    return fields


def _text(message: Message) -> str:
    if isinstance(message.content, list):
        return "\n".join(part.text for part in message.content)
    return message.content or ""


def _arguments(value: str | dict[str, Any]) -> Any:
    """An object where the text is one; a text that is no JSON (a cut call sent back) stays text."""
    if isinstance(value, dict):
        return value
    try:
        return json.loads(value or "{}")
    except (ValueError, RecursionError):
        return value
