"""The use-case scripts of the acceptance list that need no thinking model: F61-F67, F69-F73, P83, P84."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import Any, Literal

import jsonschema
import pytest
from guided_testing.running_stack import RunningStack
from openai import OpenAI
from pydantic import BaseModel, Field

MODEL = "guided_llm"


class Item(BaseModel):
    name: str = Field(max_length=20)
    quantity: int = Field(ge=1, le=99)


class Order(BaseModel):
    customer: str = Field(max_length=20)
    items: list[Item] = Field(min_length=1, max_length=2)
    express: bool


class Person(BaseModel):
    """A person."""

    name: str = Field(max_length=20)
    age: int = Field(ge=0, le=120)


CREATE_EVENT: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "create_event",
        "description": "Create a calendar event",
        "parameters": {
            "type": "object",
            "properties": {
                "title": {"type": "string", "maxLength": 30},
                "date": {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$"},
                "attendees": {"type": "array", "items": {"type": "string", "maxLength": 20}, "maxItems": 3},
            },
            "required": ["title", "date"],
            "additionalProperties": False,
        },
    },
}


def function(name: str, parameters: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": name, "parameters": parameters}}


ROUTER = [
    function(
        "open_ticket",
        {
            "type": "object",
            "properties": {
                "subject": {"type": "string", "maxLength": 30},
                "priority": {"type": "string", "enum": ["low", "medium", "high"]},
            },
            "required": ["subject", "priority"],
            "additionalProperties": False,
        },
    ),
    function(
        "refund",
        {
            "type": "object",
            "properties": {"order_id": {"type": "integer", "minimum": 1, "maximum": 99999}},
            "required": ["order_id"],
            "additionalProperties": False,
        },
    ),
    function("handoff", {"type": "object", "properties": {}, "additionalProperties": False}),
]
PARAMETERS = {t["function"]["name"]: t["function"]["parameters"] for t in [*ROUTER, CREATE_EVENT]}


def user(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


def test_f61_pydantic_schema_round_trips(client: OpenAI) -> None:
    reply = client.chat.completions.create(
        model=MODEL,
        messages=user("Order two red apples for Ann, express. Answer as JSON."),
        response_format={"type": "json_schema", "json_schema": {"name": "order", "schema": Order.model_json_schema()}},
        max_tokens=200,
    )
    assert reply.choices[0].finish_reason == "stop"
    Order.model_validate_json(reply.choices[0].message.content or "")


def test_f62_parse_returns_the_pydantic_object(client: OpenAI) -> None:
    reply = client.chat.completions.parse(
        model=MODEL, messages=user("Order one lamp for Bo."), response_format=Order, max_tokens=200
    )
    assert isinstance(reply.choices[0].message.parsed, Order)


def test_f63_an_enum_classifier_answers_with_a_label(client: OpenAI) -> None:
    schema = {
        "type": "object",
        "properties": {"label": {"enum": ["positive", "negative", "neutral"]}},
        "required": ["label"],
        "additionalProperties": False,
    }
    reply = client.chat.completions.create(
        model=MODEL,
        messages=user("I love this phone!"),
        response_format={"type": "json_schema", "json_schema": {"name": "label", "schema": schema, "strict": True}},
        max_tokens=30,
    )
    assert json.loads(reply.choices[0].message.content or "")["label"] in ("positive", "negative", "neutral")


def test_f64_json_mode_with_a_system_message_gives_an_object(client: OpenAI) -> None:
    reply = client.chat.completions.create(
        model=MODEL,
        messages=[
            {"role": "system", "content": "Answer in JSON with the one key city."},
            {"role": "user", "content": "What is the capital of France?"},
        ],
        response_format={"type": "json_object"},
        temperature=0,
        max_tokens=400,
    )
    choice = reply.choices[0]
    if choice.finish_reason == "stop":
        assert isinstance(json.loads(choice.message.content or ""), dict)
    else:
        assert choice.finish_reason == "length" and (choice.message.content or "").startswith("{")


def test_f65_a_forced_function_is_exactly_one_call_and_no_text(client: OpenAI) -> None:
    reply = client.chat.completions.create(
        model=MODEL,
        messages=user("Plan a dinner with Ann on 3 May 2026."),
        tools=[CREATE_EVENT],  # type: ignore[list-item]
        tool_choice={"type": "function", "function": {"name": "create_event"}},
        max_tokens=200,
    )
    message = reply.choices[0].message
    assert not message.content and message.tool_calls is not None and len(message.tool_calls) == 1
    call = message.tool_calls[0]
    assert call.type == "function" and call.function.name == "create_event"
    arguments = json.loads(call.function.arguments)
    jsonschema.validate(arguments, PARAMETERS["create_event"])
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", arguments["date"])


def test_f66_a_router_makes_exactly_one_call(client: OpenAI) -> None:
    for text in ("My parcel is broken.", "I want my money back for order 77.", "Let me talk to a human."):
        reply = client.chat.completions.create(
            model=MODEL,
            messages=user(text),
            tools=ROUTER,  # type: ignore[arg-type]
            tool_choice="required",
            parallel_tool_calls=False,
            max_tokens=200,
        )
        choice = reply.choices[0]
        assert choice.finish_reason == "tool_calls"
        assert choice.message.tool_calls is not None and len(choice.message.tool_calls) == 1
        call = choice.message.tool_calls[0]
        assert call.type == "function"
        jsonschema.validate(json.loads(call.function.arguments), PARAMETERS[call.function.name])


def test_f67_tool_choice_none_on_the_last_turn_makes_no_call(client: OpenAI) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "refund", "arguments": '{"order_id": 77}'}}
    tools_in_use = {
        "messages": [
            {"role": "user", "content": "Refund order 77."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": '{"refunded": true}'},
        ],
        "tools": ROUTER,
        "max_tokens": 40,
        "temperature": 0,
    }
    reply = client.chat.completions.create(model=MODEL, tool_choice="none", **tools_in_use)  # type: ignore[call-overload]
    assert not reply.choices[0].message.tool_calls and reply.choices[0].message.content
    told = client.chat.completions.create(model=MODEL, tool_choice="auto", **tools_in_use)  # type: ignore[call-overload]
    assert reply.usage.prompt_tokens < told.usage.prompt_tokens


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_f69_f70_langchain_structured_output(
    stack: RunningStack, method: Literal["json_schema", "function_calling"]
) -> None:
    from langchain_openai import ChatOpenAI

    llm = ChatOpenAI(
        model=MODEL,
        base_url=f"{stack.url}/v1",
        api_key=lambda: "flm",
        max_completion_tokens=100,
        temperature=0,
        max_retries=0,
    )
    person = llm.with_structured_output(Person, method=method).invoke("Ann is 31 years old.")
    assert isinstance(person, Person)


def curl(stack: RunningStack, body: str) -> dict[str, Any]:
    """POST as the documentation shows it: a shell, curl, the body in single quotes."""
    assert shutil.which("curl"), "curl is needed"
    command = f"curl -s {stack.url}/v1/chat/completions -H 'Content-Type: application/json' -d '{body}'"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_f71_the_curl_with_think_false(stack: RunningStack) -> None:
    answer = curl(
        stack,
        """{
          "model": "guided_llm",
          "messages": [{"role": "user", "content": "Say hello"}],
          "think": false,
          "max_tokens": 16
        }""",
    )
    assert answer["choices"][0]["message"]["content"]
    assert "reasoning_content" not in answer["choices"][0]["message"]


def test_p83_p84_the_documented_curl_without_model(stack: RunningStack) -> None:
    answer = curl(
        stack,
        """{
          "messages": [{"role": "user", "content": "Make a character."}],
          "max_tokens": 64,
          "guided_json": {
            "type": "object",
            "properties": {
              "name": {"type": "string", "maxLength": 16},
              "age": {"type": "integer", "minimum": 1, "maximum": 120},
              "class": {"enum": ["warrior", "mage", "rogue"]}
            },
            "required": ["name", "class"],
            "additionalProperties": false
          }
        }""",
    )
    character = json.loads(answer["choices"][0]["message"]["content"])
    assert list(character) == sorted(character) and {"name", "class"} <= set(character)
    assert character["class"] in ("warrior", "mage", "rogue") and 1 <= character.get("age", 1) <= 120


def test_f72_f73_any_key_is_accepted_on_any_port(stack: RunningStack) -> None:
    with OpenAI(base_url=f"{stack.url}/v1", api_key="flm") as client:
        assert [m.id for m in client.models.list()] == [MODEL]
