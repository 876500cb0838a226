"""Reasoning before an answer that is constrained: F8, F57, F68."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
from openai import OpenAI

MODEL = "guided_llm"
TRIP: dict[str, Any] = {
    "type": "object",
    "properties": {
        "hours": {"type": "integer", "minimum": 0, "maximum": 99},
        "minutes": {"type": "integer", "minimum": 0, "maximum": 59},
    },
    "required": ["hours", "minutes"],
    "additionalProperties": False,
}
ASKED: dict[str, Any] = {
    "model": MODEL,
    "messages": [{"role": "user", "content": "A train leaves at 9:40 and arrives at 12:05. How long is the trip?"}],
    "temperature": 0,
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "trip", "schema": TRIP}}
TOOL = {"type": "function", "function": {"name": "trip", "parameters": TRIP}}


def test_f68_think_then_json(client: OpenAI) -> None:
    reply = client.chat.completions.create(**ASKED, response_format=FORMAT, max_tokens=2048, extra_body={"think": True})
    choice = reply.choices[0]
    assert choice.finish_reason == "stop"
    assert getattr(choice.message, "reasoning_content", None)
    jsonschema.validate(json.loads(choice.message.content or ""), TRIP)
    assert reply.usage is not None and reply.usage.completion_tokens_details is not None
    assert 0 < (reply.usage.completion_tokens_details.reasoning_tokens or 0) < reply.usage.completion_tokens


def test_f7_f8_reasoning_and_answer_stream_as_they_come_whole(client: OpenAI) -> None:
    fields = {**ASKED, "response_format": FORMAT, "max_tokens": 200, "seed": 3, "temperature": 0.8}
    extra = {"think": True, "thinking_token_budget": 24}
    whole = client.chat.completions.create(**fields, extra_body=extra).choices[0].message
    reasoning = content = ""
    for chunk in client.chat.completions.create(**fields, extra_body=extra, stream=True):
        delta = chunk.choices[0].delta
        reasoning += getattr(delta, "reasoning_content", None) or ""
        content += delta.content or ""
    assert (reasoning, content) == (getattr(whole, "reasoning_content", ""), whole.content)
    jsonschema.validate(json.loads(content), TRIP)


def test_f57_a_forced_call_follows_the_reasoning(client: OpenAI) -> None:
    extra = {"think": True, "thinking_token_budget": 24}
    reply = client.chat.completions.create(
        **ASKED, tools=[TOOL], tool_choice="required", parallel_tool_calls=False, max_tokens=200, extra_body=extra
    )
    choice = reply.choices[0]
    assert choice.finish_reason == "tool_calls" and not choice.message.content
    [call] = choice.message.tool_calls or []
    assert call.type == "function"
    jsonschema.validate(json.loads(call.function.arguments), TRIP)


def test_d6_reasoning_that_spends_the_budget_says_length_and_has_no_content(client: OpenAI) -> None:
    reply = client.chat.completions.create(**ASKED, response_format=FORMAT, max_tokens=6, extra_body={"think": True})
    choice = reply.choices[0]
    assert choice.finish_reason == "length" and choice.message.content is None
    assert getattr(choice.message, "reasoning", None)


def test_a_response_format_and_tools_together_give_one_of_them(client: OpenAI) -> None:
    for seed in range(3):
        choice = client.chat.completions.create(
            **{**ASKED, "temperature": 1.0},
            response_format=FORMAT,
            tools=[TOOL],
            parallel_tool_calls=False,
            seed=seed,
            max_tokens=120,
            extra_body={"allow_tools_with_response_format": True},
        ).choices[0]
        calls = choice.message.tool_calls or []
        assert len(calls) <= 1 and choice.finish_reason == ("tool_calls" if calls else "stop")
        assert bool(calls) != bool(choice.message.content)
        documents = [c.function.arguments for c in calls if c.type == "function"] or [choice.message.content or ""]
        for document in documents:
            jsonschema.validate(json.loads(document), TRIP)
