"""Reasoning markers that are control tokens, through a real engine: what it shows, where a led block ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from guided_frontend.settings import Settings
from guided_grammar.formats import FORMATS, Reasoning
from guided_testing.engine_backend import engine_backend
from guided_testing.scripted_backend import load_model

from .conftest import served_by

NOTHING = {"type": "object", "properties": {}, "additionalProperties": False}
TOOL = {"type": "function", "function": {"name": "f", "parameters": NOTHING}}
REASONING = [(name, row.reasoning) for name, row in FORMATS.items() if row.reasoning and row.has_calls]
SWITCH = "{{ messages[0].content }}<|im_start|>{{ '' if enable_thinking or tools else '' }}"
CONTROL = sorted({token for row in FORMATS.values() for token in (*row.tokens, "[THINK]", "[/THINK]", "<channel|>")})
ENGINE = ("<|channel>", *CONTROL)


def answered(tmp: Path, name: str, answer: Callable[[str], str], fields: dict[str, Any], template: str = SWITCH) -> Any:
    """The one choice of a model whose every marker is a control token, and what the engine was asked."""
    model = load_model(tmp, Settings(tool_format=name), template, ENGINE)
    with engine_backend(tmp, answer) as backend, served_by(Settings(), backend, model) as frontend:
        body = frontend.ask(**fields).json()
        assert "choices" in body, body
        return body["choices"][0], backend.requests


@pytest.mark.parametrize(("name", "markers"), REASONING, ids=[name for name, _ in REASONING])
def test_free_reasoning_between_control_tokens_is_split(tmp_path: Path, name: str, markers: Reasoning) -> None:
    choice, requests = answered(tmp_path, name, lambda _: f"{markers.open}Hm, so{markers.close}Yes", {"think": True})
    assert (choice["message"]["reasoning"], choice["message"]["content"]) == ("Hm, so", "Yes")
    assert len(requests) == 1


@pytest.mark.parametrize(("name", "markers"), REASONING, ids=[name for name, _ in REASONING])
def test_led_reasoning_ends_at_its_control_token(tmp_path: Path, name: str, markers: Reasoning) -> None:
    def answer(prompt: str) -> str:
        return "yes" if prompt.rstrip().endswith(markers.close.strip()) else f"Hm, so{markers.close}no"

    choice, requests = answered(tmp_path, name, answer, {"think": True, "guided_choice": ["yes", "no"]})
    assert (choice["message"]["reasoning"], choice["message"]["content"]) == ("Hm, so", "yes")
    assert len(requests) == 2


INTERRUPTED = [(name, markers) for name, markers in REASONING if markers.interrupted_by]


@pytest.mark.parametrize("tool_choice", ["auto", "required"])
@pytest.mark.parametrize(("name", "markers"), INTERRUPTED, ids=[name for name, _ in INTERRUPTED])
def test_a_call_that_begins_inside_the_block_ends_it(
    tmp_path: Path, name: str, markers: Reasoning, tool_choice: str
) -> None:
    def answer(prompt: str) -> str:
        return f"Hm, so\n{markers.interrupted_by[0]}" if "Hm" not in prompt else "whatever"

    fields = {"think": True, "tools": [TOOL], "tool_choice": tool_choice, "parallel_tool_calls": False}
    choice, requests = answered(tmp_path, name, answer, fields)
    message = choice["message"]
    assert (message["reasoning"], message["content"], choice["finish_reason"]) == ("Hm, so", None, "tool_calls")
    assert [c["function"]["name"] for c in message["tool_calls"]] == ["f"]
    assert len(requests) == 2 and '"required"' in requests[1].constraint


def test_the_markers_of_calls_stay_hidden_where_nothing_reads_calls(tmp_path: Path) -> None:
    choice, _ = answered(tmp_path, "mistral_v11", lambda _: "a[TOOL_CALLS]b[ARGS]c", {})
    assert choice["message"]["content"] == "abc"


def test_messages_on_channels_are_read_without_tools(tmp_path: Path) -> None:
    text = "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>final<|message|>Yes"
    choice, _ = answered(tmp_path, "gpt_oss", lambda _: text, {})
    assert (choice["message"]["reasoning"], choice["message"]["content"]) == ("Hm", "Yes")


SHOWS = "{{ messages[0].content }}{% if false %}[THINK]{% endif %}"


@pytest.mark.parametrize(("fields", "is_banned"), [({}, False), ({"think": True}, False), ({"think": False}, True)])
def test_a_model_without_a_switch_decides_unless_it_is_told(
    tmp_path: Path, fields: dict[str, Any], is_banned: bool
) -> None:
    choice, [request] = answered(tmp_path, "mistral_v11", lambda _: "[THINK]Hm[/THINK]Yes", fields, SHOWS)
    assert (request.sampling.logit_bias != {}) == is_banned
    if not is_banned:
        assert (choice["message"]["reasoning"], choice["message"]["content"]) == ("Hm", "Yes")
