"""The table of docs/openai-compatibility.md against the code and against OpenAI's own types."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from guided_frontend.schemas import ChatRequest, CompletionRequest, Fields, Generation
from openai.types import completion_create_params as text_params
from openai.types.chat import ChatCompletion, ChatCompletionMessage
from openai.types.chat import completion_create_params as chat_params
from openai.types.chat.chat_completion import Choice

from .conftest import Frontend

DOC = (Path(__file__).parents[2] / "docs/openai-compatibility.md").read_text()


def rows(heading: str) -> dict[str, str]:
    """Field to status of the first table below a heading."""
    section = DOC.split(f"## {heading}")[1].split("\n## ")[0]
    cells = [line.split("|") for line in section.splitlines() if line.startswith("| `")]
    return {cell[1].strip().strip("`"): cell[2].strip() for cell in cells}


CHAT = rows("Request fields of `POST /v1/chat/completions`")
TEXT = rows("Request fields of `POST /v1/completions`")
RESPONSE = rows("Response fields of a chat completion")


def names(kind: type[Fields]) -> set[str]:
    return {field.alias or name for name, field in kind.model_fields.items()}


def taken(table: dict[str, str]) -> set[str]:
    return {name for name, status in table.items() if status != "refused"}


def test_the_chat_table_lists_exactly_the_fields_that_are_taken() -> None:
    assert taken(CHAT) == names(ChatRequest)
    assert set(CHAT.values()) == {"honoured", "no effect", "refused"}


def test_the_text_table_lists_the_fields_that_chat_does_not_share() -> None:
    assert taken(TEXT) == (names(CompletionRequest) - names(Generation)) | {"max_tokens"}


def test_every_field_of_openais_requests_is_in_the_tables() -> None:
    assert set(get_type_hints(chat_params.CompletionCreateParamsBase)) <= set(CHAT)
    assert set(get_type_hints(text_params.CompletionCreateParamsBase)) <= set(TEXT) | names(Generation)


def test_every_field_of_openais_answers_is_in_the_table() -> None:
    listed = {
        *ChatCompletion.model_fields,
        *(f"choices.{name}" for name in Choice.model_fields if name != "message"),
        *(f"choices.message.{name}" for name in ChatCompletionMessage.model_fields),
    }
    assert listed <= set(RESPONSE)


@pytest.mark.parametrize("name", [name for name, status in CHAT.items() if status == "refused"])
def test_a_refused_chat_field_is_a_400_that_names_it(frontend: Frontend, name: str) -> None:
    error = frontend.ask(**{name: {"x": 1}}).json()["error"]
    assert (error["code"], error["param"]) == (400, name) and name in error["message"]


def test_a_refused_text_field_is_a_400_that_names_it(frontend: Frontend) -> None:
    for name in set(TEXT) - taken(TEXT):
        error = frontend.post({"prompt": "x", name: "y"}, "/v1/completions").json()["error"]
        assert (error["code"], error["param"]) == (400, name)


def test_the_answers_fields_are_the_listed_ones(frontend: Frontend) -> None:
    body = frontend.ask().json()
    [choice] = body["choices"]
    sent = {
        *body,
        *(f"choices.{k}" for k in choice if k != "message"),
        *(f"choices.message.{k}" for k in choice["message"]),
    }
    assert sent <= {name for name, status in RESPONSE.items() if status != "refused"}


VALID: dict[str, Any] = {
    "max_completion_tokens": 5, "max_tokens": 5, "n": 2, "temperature": 0, "top_p": 0.5, "top_k": -1, "min_p": 0.1, "seed": 1,
    "stop": ["a"], "logit_bias": {"5": -100}, "frequency_penalty": -2, "presence_penalty": 2, "repetition_penalty": 1.1,
    "logprobs": True, "stream": True, "stream_options": {"include_usage": True}, "response_format": {"type": "text"},
    "tools": [], "tool_choice": "none", "parallel_tool_calls": False, "allow_tools_with_response_format": True, "think": False, "reasoning_effort": "none",
    "chat_template_kwargs": {"x": 1}, "thinking_token_budget": 5, "modalities": ["text"], "user": "u", "safety_identifier": "u",
    "metadata": {"a": "b"}, "store": False, "service_tier": "auto", "prompt_cache_key": "k", "prompt_cache_retention": "24h",
    "model": "default", "jump_forward": False, "messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}],
    "guided_choice": ["a"], "guided_regex": "a", "guided_grammar": 'root ::= "a"', "guided_json": True,
    "structured_outputs": {"choice": ["a"]},
}  # fmt: skip
COUPLED = {"top_logprobs": {"logprobs": True, "top_logprobs": 2}}


@pytest.mark.parametrize("name", sorted(taken(CHAT)))
def test_every_other_chat_field_is_accepted_alone(frontend: Frontend, name: str) -> None:
    fields = COUPLED.get(name) or {name: VALID[name]}
    assert frontend.ask(**fields).status_code == 200, json.dumps(fields)
