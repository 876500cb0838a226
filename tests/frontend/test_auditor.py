from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from guided_frontend import auditor
from guided_frontend.app import create_app
from guided_frontend.served import ServedModel
from guided_frontend.settings import Settings
from guided_testing.scripted_backend import Answer, ScriptedBackend

from .conftest import Frontend, served_by

SCHEMA = {"properties": {"a": {"type": "integer"}}, "required": ["a"]}
DOCUMENT = {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}}
TOOL = {"type": "function", "function": {"name": "f", "parameters": SCHEMA}}
FORCED = {"tools": [TOOL], "tool_choice": "required"}
OPEN = '<tool_call>\n{"name": "f", "arguments": '


@pytest.fixture(scope="module")
def audited_once(settings: Settings, model: ServedModel) -> Iterator[Frontend]:
    with served_by(replace(settings, check_answers=True), ScriptedBackend(), model) as frontend:
        yield frontend


@pytest.fixture
def audited(audited_once: Frontend) -> Frontend:
    audited_once.backend.is_up = True
    return audited_once


ANSWERS: list[tuple[str, dict[str, Any], tuple[str, ...], str]] = [
    ("document that holds", DOCUMENT, ('{"a"', ": 1}"), ""),
    ("document of a wrong type", DOCUMENT, ('{"a"', ': "x"}'), "/properties/a/type"),
    ("document without what is required", DOCUMENT, ("{}",), "required"),
    ("regex", {"guided_regex": "[0-9]+"}, ("12", "x"), "regex"),
    ("choice", {"guided_choice": ["yes", "no"]}, ("yes", "!"), "choices"),
    ("call that holds", FORCED, (OPEN + '{"a": 1}}\n</tool_call>',), ""),
    ("call with wrong arguments", FORCED, (OPEN, '{"a": null}}\n</tool_call>'), "integer"),
    ("no call where one is forced", FORCED, ("Hello",), "no call"),
    ("free text", {}, ("anything {",), ""),
]


@pytest.mark.parametrize(("fields", "pieces", "fault"), [a[1:] for a in ANSWERS], ids=[a[0] for a in ANSWERS])
def test_a_whole_answer_that_violates_its_constraint_is_a_500(
    audited: Frontend, fields: dict[str, Any], pieces: tuple[str, ...], fault: str
) -> None:
    audited.answers(Answer(pieces))
    reply = audited.ask(**fields)
    assert reply.status_code == (500 if fault else 200)
    if fault:
        assert fault in reply.json()["error"]["message"]


@pytest.mark.parametrize(("fields", "pieces", "fault"), [a[1:] for a in ANSWERS], ids=[a[0] for a in ANSWERS])
def test_a_stream_never_says_that_a_violating_answer_ended_well(
    audited: Frontend, fields: dict[str, Any], pieces: tuple[str, ...], fault: str
) -> None:
    audited.answers(Answer(pieces))
    reply = audited.ask(**fields, stream=True)
    events = [line.removeprefix("data: ") for line in reply.text.splitlines() if line]
    if not fault:
        assert events[-1] == "[DONE]" and "finish_reason" in events[-2]
        return
    assert fault in json.loads(events[-1])["error"]["message"]
    assert not [e for e in events[:-1] if json.loads(e)["choices"][0]["finish_reason"]]


@pytest.mark.parametrize("pieces", [("12",), ("x",)])
def test_text_completions_are_judged_unless_the_prompt_is_part_of_them(
    audited: Frontend, pieces: tuple[str, ...]
) -> None:
    audited.answers(Answer(pieces))
    body = {"prompt": "n: ", "guided_regex": "[0-9]+"}
    judged, echoed = (audited.post(body | more, "/v1/completions") for more in ({}, {"echo": True}))
    assert (judged.status_code, echoed.status_code) == (200 if pieces == ("12",) else 500, 200)


def test_every_choice_is_judged(audited: Frontend) -> None:
    audited.answers(Answer(("12",)))
    before = _counted(audited)
    assert audited.ask(guided_regex="[0-9]+", n=3).status_code == 200
    assert _counted(audited)["passed"] == before["passed"] + 3


def test_a_cut_answer_is_not_a_violation(audited: Frontend) -> None:
    audited.answers(Answer(('{"a"',), "length"))
    assert audited.ask(**DOCUMENT).json()["choices"][0]["finish_reason"] == "length"


def test_a_violation_is_an_outcome_and_a_count_of_its_own(audited: Frontend) -> None:
    audited.answers(Answer(("{}",)))
    before = _counted(audited)
    audited.ask(**DOCUMENT)
    text = audited.http.get("/metrics").text
    assert _counted(audited)["failed"] == before["failed"] + 1
    assert 'outcome="constraint_violation"} ' in text


def test_what_takes_too_long_to_judge_passes_untold(audited: Frontend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auditor, "_SECONDS", 0.0)
    audited.answers(Answer(("{}",)))
    before = _counted(audited)
    assert audited.ask(**DOCUMENT).status_code == 200
    assert _counted(audited)["untold"] == before["untold"] + 1


def test_without_the_setting_nothing_is_judged(frontend: Frontend) -> None:
    frontend.answers(Answer(("{}",)))
    assert frontend.ask(**DOCUMENT).status_code == 200
    assert "checked_answers_total{" not in frontend.http.get("/metrics").text


def test_the_setting_without_the_validator_keeps_the_frontend_from_starting(
    settings: Settings, model: ServedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("guided_grammar.second_opinion.is_available", lambda: False)
    with pytest.raises(ValueError, match="jsonschema-rs"):
        create_app(replace(settings, check_answers=True), ScriptedBackend(), (model,))


def _counted(frontend: Frontend) -> dict[str, float]:
    text = frontend.http.get("/metrics").text
    name = "guided_frontend_checked_answers_total"
    found = dict.fromkeys(("passed", "failed", "untold"), 0.0)
    for line in text.splitlines():
        if line.startswith(f'{name}{{verdict="'):
            found[line.split('"')[1]] = float(line.rpartition(" ")[2])
    return found
