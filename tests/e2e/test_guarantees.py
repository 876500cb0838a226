"""What is promised of the running service as a whole."""

from __future__ import annotations

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import jsonschema
import openai
import pytest
from guided_testing.running_stack import RunningStack
from openai import OpenAI

MODEL = "guided_llm"
TICKET: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "integer", "minimum": 1, "maximum": 9999},
        "tags": {"type": "array", "items": {"enum": ["new", "vip", "late"]}, "minItems": 1, "maxItems": 3},
        "note": {"type": "string", "maxLength": 24},
    },
    "required": ["id", "tags", "note"],
    "additionalProperties": False,
}


def ask(client: OpenAI, text: str, **fields: Any) -> Any:
    messages = [{"role": "user", "content": text}]
    return client.chat.completions.create(model=MODEL, messages=messages, max_tokens=120, **fields)  # type: ignore[call-overload]


def response_format(schema: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


def streamed_text(chunks: Any) -> str:
    return "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_f7_a_streamed_answer_equals_the_whole_one_for_the_same_seed(client: OpenAI, temperature: float) -> None:
    fields = {"response_format": response_format(TICKET), "seed": 11, "temperature": temperature}
    whole = ask(client, "Write a ticket.", **fields).choices[0].message.content
    assert streamed_text(ask(client, "Write a ticket.", stream=True, **fields)) == whole
    jsonschema.validate(json.loads(whole), TICKET)


def test_f53_a_schema_that_cannot_be_enforced_is_refused_naming_keyword_and_path(client: OpenAI) -> None:
    schema = {"type": "object", "properties": {"code": {"pattern": "^[a-z](?=.*[0-9])[a-z0-9]+$"}}}
    with pytest.raises(openai.BadRequestError) as refused:
        ask(client, "x", response_format=response_format(schema))
    assert "pattern" in refused.value.message and "/properties/code" in refused.value.message


def test_d142_an_untyped_pattern_is_enforced(client: OpenAI) -> None:
    schema = {
        "type": "object",
        "properties": {"code": {"pattern": "^[A-Z]{2,5}$"}},
        "required": ["code"],
        "additionalProperties": False,
    }
    for seed in range(4):
        content = ask(client, 'Answer {"code": "abc"}', response_format=response_format(schema), seed=seed).choices[0]
        if content.finish_reason == "stop":
            jsonschema.validate(json.loads(content.message.content), schema)


def test_f75_naming_an_unknown_function_gives_the_exact_body(stack: RunningStack) -> None:
    tool = {"type": "function", "function": {"name": "known", "parameters": {"type": "object"}}}
    body = {
        "messages": [{"role": "user", "content": "x"}],
        "tools": [tool],
        "tool_choice": {"type": "function", "function": {"name": "nope"}},
    }
    answer = httpx.post(f"{stack.url}/v1/chat/completions", json=body)
    assert answer.status_code == 400
    assert answer.json() == {
        "error": {
            "message": 'tool_choice names function "nope" which is not in tools',
            "type": "invalid_request_error",
            "code": 400,
        }
    }


@pytest.mark.parametrize(
    "fields",
    [
        {"guided_regex": "(unclosed"},
        {"guided_json": {"type": "nonsense"}},
        {"guided_choice": []},
        {"guided_grammar": "start ::= x"},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": 3}}}},
    ],
    ids=["p1_regex", "p2_json", "p3_choice", "p4_grammar", "p5_response_format"],
)
def test_p6_an_invalid_constraint_is_a_400_without_an_inference_call(
    stack: RunningStack, fields: dict[str, Any]
) -> None:
    before = stack.metric("nv_inference_request_success") + stack.metric("nv_inference_request_failure")
    body = {"messages": [{"role": "user", "content": "x"}], **fields}
    answer = httpx.post(f"{stack.url}/v1/chat/completions", json=body)
    assert answer.status_code == 400 and answer.json()["error"]["type"] == "invalid_request_error"
    assert stack.metric("nv_inference_request_success") + stack.metric("nv_inference_request_failure") == before


def test_p7_every_one_of_n_choices_carries_the_constraint(client: OpenAI) -> None:
    reply = ask(client, "A ticket.", response_format=response_format(TICKET), n=4, seed=3)
    assert [c.index for c in reply.choices] == [0, 1, 2, 3]
    for choice in reply.choices:
        jsonschema.validate(json.loads(choice.message.content), TICKET)


GUIDED: list[tuple[str, dict[str, Any], Any]] = [
    ("choice", {"guided_choice": ["yes", "no", "maybe"]}, lambda t: t in ("yes", "no", "maybe")),
    ("regex", {"guided_regex": "[0-9]{4}-[0-9]{2}-[0-9]{2}"}, lambda t: re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", t)),
    ("regex_leading_space", {"guided_regex": " the [a-z]{1,8}"}, lambda t: re.fullmatch(" the [a-z]{1,8}", t)),
    (
        "grammar",
        {"guided_grammar": 'root ::= "(" root? ")" | [a-z]{1,4}'},
        lambda t: re.fullmatch(r"[(]*[a-z]{0,4}[)]*", t),
    ),
    ("json", {"guided_json": TICKET}, lambda t: jsonschema.validate(json.loads(t), TICKET) is None),
]


@pytest.mark.parametrize(("fields", "holds"), [g[1:] for g in GUIDED], ids=[g[0] for g in GUIDED])
def test_p30_p33_p49_each_guided_field_holds_at_high_temperature(
    client: OpenAI, fields: dict[str, Any], holds: Any
) -> None:
    choice = ask(client, "Is it late?", extra_body=fields, temperature=1.8, seed=5).choices[0]
    assert choice.finish_reason == "stop" and holds(choice.message.content)


def test_sixteen_concurrent_mixed_requests_all_hold(client: OpenAI) -> None:
    def one(number: int) -> bool:
        _, fields, holds = GUIDED[number % len(GUIDED)]
        if number % 2:
            chunks = ask(client, f"Request {number}", extra_body=fields, stream=True, seed=number)
            return bool(holds(streamed_text(chunks)))
        return bool(holds(ask(client, f"Request {number}", extra_body=fields, seed=number).choices[0].message.content))

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(one, range(16)))


def test_f16_a_cut_document_says_length_and_is_a_prefix(client: OpenAI) -> None:
    messages = [{"role": "user", "content": "A ticket."}]
    fields = {"model": MODEL, "messages": messages, "response_format": response_format(TICKET), "max_tokens": 5}
    choice = client.chat.completions.create(**fields).choices[0]  # type: ignore[call-overload]
    assert choice.finish_reason == "length" and choice.message.content.startswith('{"id": ')
    with pytest.raises(ValueError, match=r"Expecting|Unterminated|delimiter|Extra"):
        json.loads(choice.message.content)


def test_a_client_that_disconnects_mid_stream_frees_its_row(stack: RunningStack) -> None:
    body = {
        "messages": [{"role": "user", "content": "Tell a very long story."}],
        "stream": True,
        "max_tokens": 1500,
        "guided_regex": "[a-z ]{4000,4050}",
    }
    with httpx.stream("POST", f"{stack.url}/v1/chat/completions", json=body, timeout=60) as answer:
        lines = answer.iter_lines()
        for _ in range(8):
            next(lines)
        assert stack.metric("guided_running_rows") >= 1
    deadline = time.monotonic() + 5
    while stack.metric("guided_running_rows") > 0:
        assert time.monotonic() < deadline, "the row is still held"
        time.sleep(0.05)


def test_the_bare_server_answers_a_constrained_generate_request(stack: RunningStack) -> None:
    body = {
        "text_input": "<|im_start|>user\nIs fire hot?<|im_end|>\n<|im_start|>assistant\n",
        "sampling_parameters": json.dumps({"max_tokens": 8}),
        "constraint": json.dumps({"kind": "choice", "value": ["yes", "no"]}),
    }
    answer = httpx.post(f"{stack.triton}/v2/models/{MODEL}/generate", json=body, timeout=60)
    assert answer.status_code == 200 and answer.json()["text_output"] in ("yes", "no")


def test_d50_the_versions_in_use_are_discoverable(stack: RunningStack) -> None:
    server = stack.get_json(f"{stack.triton}/v2")
    assert isinstance(server, dict) and server["version"] == "2.51.0"
