"""Requests to what the engine is asked. Pure: no clock, no network, no event loop."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from guided_engine.protocol import GenerateRequest, RequestError, SamplingParams
from guided_grammar.spec import Kind

from guided_frontend import constraint
from guided_frontend.constraint import Constraint
from guided_frontend.errors import BadRequest
from guided_frontend.schemas import ChatRequest, CompletionRequest, Generation
from guided_frontend.served import EFFORT, THINKING_SWITCHES, ServedModel


@dataclass(frozen=True)
class Plan:
    """Everything decided about a request before its prompt is rendered. thinks: None where the request is silent."""

    constraint: Constraint
    sampling: SamplingParams
    thinks: bool | None = None

    def of(self, client: str) -> Plan:
        """For that client: where many wait in the engine's queue, clients take turns."""
        return replace(self, sampling=replace(self.sampling, client=client))

    def request(
        self, ids: Sequence[int], shown: tuple[str, ...] = (), bias: Mapping[int, float] | None = None
    ) -> GenerateRequest:
        """The engine's request; always streamed, so that a stuck engine shows as silence. `bias`: ours, over theirs."""
        biases = {**self.sampling.logit_bias, **(bias or {})}
        sampling = replace(self.sampling, logit_bias=biases, shown_tokens=shown)
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


def _thinks(body: ChatRequest, model: ServedModel) -> bool | None:
    """What the request asks for; of several spellings the more particular one wins."""
    effort = None if body.reasoning_effort is None else body.reasoning_effort != "none"
    variables = body.chat_template_kwargs or {}
    spellings = {
        "chat_template_kwargs": next((variables[name] for name in THINKING_SWITCHES if name in variables), None),
        "think": body.think,
        EFFORT: effort,
    }
    for field, told in spellings.items():
        if field == EFFORT and told and model.takes_effort and model.format.reasoning is None:
            continue
        if told and not (model.thinks or model.thinks_unasked):
            raise BadRequest(f"{field} asks for reasoning, which this model does not do", field)
        if told is not None:
            return bool(told)
    return None


def _sampling(body: Generation, wanted: Constraint, max_tokens: int | None, logprobs: int | None) -> SamplingParams:
    stop = [body.stop] if isinstance(body.stop, str) else list(body.stop or ())
    if stop and wanted.spec.kind is not Kind.FREE:
        raise BadRequest(f"stop cannot be combined with {wanted.field}: it could cut the document", "stop")
    fields = {
        "max_tokens": max_tokens, "temperature": body.temperature, "top_p": body.top_p, "top_k": max(body.top_k, 0),
        "min_p": body.min_p, "seed": body.seed, "n": body.n, "stop": stop, "logprobs": logprobs,
        "frequency_penalty": body.frequency_penalty, "presence_penalty": body.presence_penalty,
        "repetition_penalty": body.repetition_penalty, "logit_bias": body.logit_bias,
        "jump_forward": body.jump_forward,
    }  # fmt: skip
    try:
        return SamplingParams.from_json(json.dumps(fields))
    except RequestError as error:
        raise BadRequest(error.message, error.param) from None
