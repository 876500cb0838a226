"""One truth about the context: the engine's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from guided_frontend.errors import BadRequest
from guided_frontend.settings import Settings
from guided_testing.scripted_backend import Answer, ScriptedBackend, load_model

from .conftest import Frontend, served_by


@pytest.fixture
def unconfigured(tmp_path: Path) -> Iterator[Frontend]:
    settings = Settings(served_model_names=("m",))
    backend = ScriptedBackend([Answer(context=300)])
    with served_by(settings, backend, load_model(tmp_path, settings)) as frontend:
        yield frontend


def told(frontend: Frontend) -> Any:
    return frontend.http.get("/v1/models/m").json()["max_model_len"]


@pytest.mark.parametrize("ask", ["answer", "ready"])
def test_the_context_of_an_unconfigured_model_is_what_the_engine_says(unconfigured: Frontend, ask: str) -> None:
    assert told(unconfigured) is None
    assert (unconfigured.ask() if ask == "answer" else unconfigured.http.get("/health/ready")).status_code == 200
    assert told(unconfigured) == 300
    error = unconfigured.ask(max_tokens=5000).json()["error"]
    assert error["param"] == "max_tokens" and "300" in error["message"] and "5000" in error["message"]
    assert len(unconfigured.backend.requests) == 1


def test_a_request_that_nobody_can_judge_yet_is_left_to_the_engine(unconfigured: Frontend) -> None:
    refusal = BadRequest("the context holds 300 tokens: ...", "input_ids")
    unconfigured.answers(Answer(error=refusal))
    assert unconfigured.ask().json()["error"] == {
        "message": refusal.message, "type": "invalid_request_error", "code": 400, "param": "messages",
    }  # fmt: skip


def test_an_engine_that_came_back_with_another_context_is_believed(unconfigured: Frontend) -> None:
    unconfigured.ask()
    unconfigured.answers(Answer(context=200))
    unconfigured.ask()
    assert told(unconfigured) == 200


LONG = "a b " * 2048
CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
OVERFLOWS: list[tuple[str, str, dict[str, Any], str, list[str]]] = [
    ("budget", CHAT, {"max_tokens": 5000}, "max_tokens", ["4096", "5000"]),
    ("budget_by_its_new_name", CHAT, {"max_completion_tokens": 5000}, "max_completion_tokens", ["4096", "5000"]),
    ("prompt_alone", CHAT, {"messages": [{"role": "user", "content": LONG}]}, "messages", ["4096", "alone has 82"]),
    ("prompt_and_budget", CHAT, {"messages": [{"role": "user", "content": LONG}], "max_tokens": 1}, "messages", ["4096", "alone has 82"]),
    ("text_budget", TEXT, {"prompt": "x", "max_tokens": 4096}, "max_tokens", ["4096", "has 1 "]),
    ("text_prompt_alone", TEXT, {"prompt": LONG}, "prompt", ["4096", "8192"]),
    ("second_of_two_prompts", TEXT, {"prompt": ["x", LONG]}, "prompt", ["4096", "8192"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "fields", "param", "numbers"), [o[1:] for o in OVERFLOWS], ids=[o[0] for o in OVERFLOWS]
)
def test_an_overflow_is_a_400_with_both_numbers_that_blames_the_right_field(
    frontend: Frontend, path: str, fields: dict[str, Any], param: str, numbers: list[str]
) -> None:
    base = {"messages": [{"role": "user", "content": "Hi"}]} if path == CHAT else {}
    answer = frontend.post({**base, **fields}, path)
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (400, param)
    assert all(number in error["message"] for number in numbers)
    assert frontend.backend.requests == []


def test_the_context_filled_to_the_last_token_is_served(frontend: Frontend) -> None:
    assert frontend.post({"prompt": [7] * 4095, "max_tokens": 1}, TEXT).status_code == 200
    assert frontend.post({"prompt": [7] * 4095, "max_tokens": 2}, TEXT).status_code == 400
