from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from guided_engine.protocol import GenerateRequest
from guided_frontend.prompt import PromptTokenizer
from guided_frontend.served import ServedModel
from guided_frontend.settings import Settings
from guided_testing.scripted_backend import Answer, ScriptedBackend, load_model

from .conftest import Frontend, served_by

OPTIONAL = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
    "{% if not enable_thinking %}<think>\n\n</think>\n\n{% endif %}{{ '' if tools else '' }}"
)
ALWAYS = "{{ messages[0].content }}<|im_start|>assistant\n<think>\n{{ '' if tools else '' }}"
JSON = {"response_format": {"type": "json_object"}}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def thinker(tmp: Any, template: str) -> ServedModel:
    return load_model(tmp, Settings(tool_format="hermes"), template)


@pytest.fixture(scope="module")
def optional(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Frontend]:
    backend = ScriptedBackend()
    with served_by(Settings(), backend, thinker(tmp_path_factory.mktemp("optional"), OPTIONAL)) as frontend:
        yield frontend


@pytest.fixture(scope="module")
def always(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Frontend]:
    backend = ScriptedBackend()
    with served_by(Settings(), backend, thinker(tmp_path_factory.mktemp("always"), ALWAYS)) as frontend:
        yield frontend


def answered(frontend: Frontend, *answers: Answer, **fields: Any) -> dict[str, Any]:
    """The one choice of the whole answer."""
    frontend.answers(*answers, Answer())
    body = frontend.ask(**fields).json()
    assert "choices" in body, body
    return {**body["choices"][0], "usage": body["usage"]}


def prompt(frontend: Frontend, request: GenerateRequest) -> str:
    ids = list(request.input_ids or ())
    return str(frontend.post({"tokens": ids}, "/detokenize").json()["prompt"])


THOUGHT = Answer(("Hm", ", so"))
DOCUMENT = Answer(('{"a"', ": 1}"))


def test_f57_f68_reasoning_is_free_and_the_constraint_begins_after_it(optional: Frontend) -> None:
    choice = answered(optional, THOUGHT, DOCUMENT, think=True, max_tokens=100, seed=3, **JSON)
    message = choice["message"]
    assert message["reasoning_content"] == message["reasoning"] == "Hm, so"
    assert message["content"] == '{"a": 1}' and choice["finish_reason"] == "stop"
    free, constrained = optional.backend.requests
    assert (free.constraint, free.sampling.stop, free.sampling.max_tokens) == ("", ("</think>",), 100)
    assert '"json_object"' in constrained.constraint and constrained.sampling.max_tokens == 98
    assert prompt(optional, free).endswith("assistant\n<think>\n")
    assert prompt(optional, constrained) == prompt(optional, free) + "Hm, so</think>\n\n"
    assert choice["usage"]["completion_tokens"] == 4
    assert choice["usage"]["completion_tokens_details"] == {"reasoning_tokens": 2}
    assert choice["usage"]["prompt_tokens"] == len(free.input_ids or ())


@pytest.mark.parametrize("n", [1, 3])
def test_a_streamed_answer_after_reasoning_is_the_sum_of_its_chunks(optional: Frontend, n: int) -> None:
    fields = {"think": True, "n": n, "seed": 5, **JSON}
    optional.answers(THOUGHT, DOCUMENT)
    whole = optional.ask(**fields).json()
    optional.answers(THOUGHT, DOCUMENT)
    text = optional.ask(stream=True, **fields).text
    sums = [{"content": "", "reasoning_content": "", "finish": ""} for _ in range(n)]
    for line in text.split("\n\n")[:-2]:
        for choice in json.loads(line.removeprefix("data: "))["choices"]:
            got = sums[choice["index"]]
            got["content"] += choice["delta"].get("content") or ""
            got["reasoning_content"] += choice["delta"].get("reasoning_content") or ""
            got["finish"] += choice["finish_reason"] or ""
    assert [(s["content"], s["reasoning_content"], s["finish"]) for s in sums] == [
        (c["message"]["content"], c["message"]["reasoning_content"], c["finish_reason"]) for c in whole["choices"]
    ]
    assert sorted(r.sampling.seed or 0 for r in optional.backend.requests[1:]) == [5 + i for i in range(n)]


def test_forced_calls_work_after_reasoning(optional: Frontend) -> None:
    call = Answer(('<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>',))
    choice = answered(optional, THOUGHT, call, think=True, tools=[TOOL], tool_choice="required")
    assert choice["message"]["tool_calls"][0]["function"]["name"] == "f"
    assert choice["message"]["reasoning"] == "Hm, so" and choice["finish_reason"] == "tool_calls"


def test_d6_reasoning_that_spends_the_budget_gives_null_content_and_length(optional: Frontend) -> None:
    spent = Answer(("Hm", ", so"), "length")
    choice = answered(optional, spent, DOCUMENT, think=True, max_tokens=2, **JSON)
    assert choice["message"]["content"] is None and choice["message"]["reasoning"] == "Hm, so"
    assert choice["finish_reason"] == "length" and len(optional.backend.requests) == 1


def test_a_thinking_budget_closes_the_block_and_the_answer_follows(optional: Frontend) -> None:
    spent = Answer(("Hm", ", so"), "length")
    choice = answered(optional, spent, DOCUMENT, think=True, thinking_token_budget=2, max_tokens=50, **JSON)
    assert choice["message"]["content"] == '{"a": 1}' and choice["finish_reason"] == "stop"
    assert [r.sampling.max_tokens for r in optional.backend.requests] == [2, 48]


@pytest.mark.parametrize(
    ("fields", "is_on"),
    [
        ({}, False), ({"think": False}, False), ({"think": True}, True), ({"reasoning_effort": "high"}, True),
        ({"reasoning_effort": "none"}, False), ({"think": False, "reasoning_effort": "high"}, False),
        ({"chat_template_kwargs": {"enable_thinking": True}}, True),
        ({"chat_template_kwargs": {"enable_thinking": False}, "think": True}, False),
    ],
)  # fmt: skip
def test_f8_thinking_is_switched_by_any_of_its_spellings(
    optional: Frontend, fields: dict[str, Any], is_on: bool
) -> None:
    answered(optional, DOCUMENT, **fields)
    [request] = optional.backend.requests
    assert prompt(optional, request).endswith("</think>\n\n") != is_on


def test_f14_without_thinking_the_block_cannot_be_opened(optional: Frontend) -> None:
    answered(optional, Answer())
    answered(optional, Answer(), think=True)
    ids = optional.post({"prompt": "<think>"}, "/tokenize").json()["tokens"]
    assert optional.backend.requests[0].sampling.logit_bias == {}
    answered(optional, Answer(), think=False)
    assert optional.backend.requests[0].sampling.logit_bias == {ids[0]: -100.0}


def test_free_reasoning_needs_one_generation_and_is_split(optional: Frontend) -> None:
    choice = answered(optional, Answer(("<think>\nHm", "</think>", "\n\nYes")), think=True)
    assert (choice["message"]["reasoning"], choice["message"]["content"]) == ("Hm", "Yes")
    assert len(optional.backend.requests) == 1


def test_a_template_that_always_opens_the_block_starts_inside_it(always: Frontend) -> None:
    choice = answered(always, Answer(("Hm</think>\n", "Yes")))
    assert (choice["message"]["reasoning"], choice["message"]["content"]) == ("Hm", "Yes")
    choice = answered(always, THOUGHT, DOCUMENT, **JSON)
    assert (choice["message"]["reasoning"], choice["message"]["content"]) == ("Hm, so", '{"a": 1}')
    assert prompt(always, always.backend.requests[0]).count("<think>") == 1


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"think": True}, "think"),
        ({"reasoning_effort": "low"}, "reasoning_effort"),
        ({"chat_template_kwargs": {"enable_thinking": True}}, "chat_template_kwargs"),
    ],
)
def test_a_model_whose_template_knows_no_reasoning_refuses_to(
    tmp_path: Any, fields: dict[str, Any], param: str
) -> None:
    with served_by(Settings(), ScriptedBackend(), thinker(tmp_path, "{{ messages[0].content }}")) as frontend:
        answer = frontend.ask(**fields)
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)
        assert frontend.ask(think=False, reasoning_effort="none").status_code == 200


def test_a_model_that_was_not_made_to_reason_is_led_through_it(tmp_path: Any) -> None:
    model = load_model(tmp_path, Settings())
    text = (tmp_path / "tokenizer.json").read_text().replace("think>", "other>")
    (tmp_path / "tokenizer.json").write_text(text)
    plain = replace(model, tokenizer=PromptTokenizer(tmp_path))
    with served_by(Settings(), ScriptedBackend(), plain) as frontend:
        choice = answered(frontend, Answer(("Step one.",)), Answer(("Yes",)), think=True)
        first, second = frontend.backend.requests
        assert prompt(frontend, first).endswith("<|im_start|>assistant\n<think>\n")
        assert prompt(frontend, second).endswith("<think>\nStep one.</think>\n\n")
    assert (choice["message"]["reasoning"], choice["message"]["content"]) == ("Step one.", "Yes")


def test_reasoning_sent_back_reaches_the_template(tmp_path: Any) -> None:
    template = "{{ messages[0].reasoning_content }}|{{ messages[0].content }}"
    backend = ScriptedBackend()
    with served_by(Settings(), backend, thinker(tmp_path, template)) as frontend:
        for field in ("reasoning", "reasoning_content"):
            frontend.post({"messages": [{"role": "assistant", "content": "b", field: "a"}]})
        assert [prompt(frontend, request) for request in backend.requests] == ["a|b", "a|b"]


def test_a_template_that_is_told_the_effort_writes_it_into_the_prompt(tmp_path: Any) -> None:
    template = "Reasoning: {{ reasoning_effort or 'medium' }}{{ messages[0].content }}"
    model = load_model(tmp_path, Settings(tool_format="gpt_oss"), template)
    with served_by(Settings(), ScriptedBackend(), model) as frontend:
        for effort in ("low", "high", None):
            assert frontend.ask(reasoning_effort=effort).status_code == 200
        assert frontend.ask(think=True).status_code == 400
        shown = [prompt(frontend, request) for request in frontend.backend.requests]
        assert shown == ["Reasoning: lowHi", "Reasoning: highHi", "Reasoning: mediumHi"]
