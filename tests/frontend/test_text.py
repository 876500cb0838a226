from __future__ import annotations

import json
from typing import Any

import openai
import pytest
from guided_engine.protocol import RequestError
from guided_frontend.errors import of_engine
from guided_grammar.spec import GrammarSpec, Kind
from guided_testing.scripted_backend import Answer
from openai.types import Completion

from .conftest import Frontend


def complete(frontend: Frontend, **fields: Any) -> Any:
    return frontend.post({"prompt": "Once", **fields}, "/v1/completions")


def test_a_whole_completion_is_openais_object(frontend: Frontend) -> None:
    reply = Completion.model_validate(complete(frontend).json(), strict=True)
    assert (reply.choices[0].text, reply.choices[0].finish_reason) == ("Hello there!", "stop")
    assert reply.usage is not None and (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (4, 3)
    assert frontend.backend.requests[0].sampling.max_tokens == 16


@pytest.mark.parametrize(
    ("prompt", "num_prompts"),
    [("Once", 1), (["a", "b"], 2), ([1, 2, 3], 1), ([[1], [2, 3], [4]], 3)],
    ids=["text", "texts", "ids", "lists of ids"],
)
@pytest.mark.parametrize("n", [1, 2])
def test_every_prompt_gets_n_choices_whole_and_streamed(
    frontend: Frontend, prompt: Any, num_prompts: int, n: int
) -> None:
    whole = frontend.client.completions.create(model="smollm2", prompt=prompt, n=n)
    assert [c.index for c in whole.choices] == list(range(num_prompts * n))
    texts = ["" for _ in whole.choices]
    for chunk in frontend.client.completions.create(model="smollm2", prompt=prompt, n=n, stream=True):
        for choice in chunk.choices:
            texts[choice.index] += choice.text
    assert texts == [c.text for c in whole.choices] == ["Hello there!"] * num_prompts * n


def test_token_ids_are_sent_as_they_are(frontend: Frontend) -> None:
    complete(frontend, prompt=[5, 6, 7])
    assert frontend.backend.requests[0].input_ids == (5, 6, 7)


def test_p25_a_constraint_field_reaches_the_engine(frontend: Frontend) -> None:
    complete(frontend, guided_choice=["a", "b"])
    assert GrammarSpec.from_json(frontend.backend.requests[0].constraint) == GrammarSpec(Kind.CHOICE, ["a", "b"])


@pytest.mark.parametrize("is_stream", [False, True])
def test_echo_puts_the_prompt_first(frontend: Frontend, is_stream: bool) -> None:
    got: Any = frontend.client.completions.create(model="smollm2", prompt="Once", echo=True, stream=is_stream)
    assert "".join(c.choices[0].text for c in (got if is_stream else [got])) == "OnceHello there!"


def test_logprobs_are_the_older_apis_parallel_lists(frontend: Frontend) -> None:
    held = complete(frontend, logprobs=2).json()["choices"][0]["logprobs"]
    assert held["tokens"] == ["Hello", " there", "!"] and held["text_offset"] == [0, 5, 11]
    assert held["token_logprobs"] == [-0.5] * 3 and [len(top) for top in held["top_logprobs"]] == [1] * 3


def test_usage_is_the_sum_over_prompts_and_comes_last_when_asked_for(frontend: Frontend) -> None:
    fields = {"prompt": ["ab", "cd"], "stream": True, "stream_options": {"include_usage": True}}
    lines = [line.removeprefix("data: ") for line in complete(frontend, **fields).text.split("\n\n") if line]
    *chunks, last = (json.loads(line) for line in lines[:-1])
    assert all(chunk["usage"] is None for chunk in chunks) and lines[-1] == "[DONE]"
    assert last["choices"] == []
    assert last["usage"] == {"prompt_tokens": 4, "completion_tokens": 6, "total_tokens": 10}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"prompt": ""}, "prompt"), ({"prompt": []}, "prompt"), ({"prompt": [[]]}, "prompt"),
        ({"prompt": ["a"] * 129}, "prompt"), ({"prompt": [999999]}, "prompt"), ({"prompt": [-1]}, "prompt"),
        ({"prompt": "x" * 5000}, "prompt"), ({"echo": True, "logprobs": 1}, "echo"), ({"suffix": "end"}, "suffix"),
        ({"best_of": 2}, "best_of"), ({"guided_regex": "(a"}, "guided_regex"), ({"stop": "a", "guided_choice": ["b"]}, "stop"),
    ],
)  # fmt: skip
def test_what_cannot_be_served_is_a_400_that_names_the_field(
    frontend: Frontend, fields: dict[str, Any], param: str
) -> None:
    answer = complete(frontend, **fields)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)
    assert frontend.backend.requests == []


@pytest.mark.parametrize("prompt", ["a", ["a", "b"]])
def test_an_engine_error_ends_the_whole_answer(frontend: Frontend, prompt: Any) -> None:
    frontend.answers(Answer(error=of_engine(RequestError("queue is full", 429)), error_after=1))
    with pytest.raises(openai.RateLimitError):
        frontend.client.completions.create(model="smollm2", prompt=prompt)
    with pytest.raises(openai.APIError, match="queue is full"):
        list(frontend.client.completions.create(model="smollm2", prompt=prompt, stream=True))
    assert frontend.backend.running == 0


@pytest.mark.parametrize(
    ("path", "base"),
    [("/v1/completions", {"prompt": "x"}), ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]})],
)
@pytest.mark.parametrize(("fields", "jumps"), [({}, True), ({"jump_forward": False}, False)])
def test_the_engine_is_told_the_client_and_whether_forced_text_may_jump(
    frontend: Frontend, path: str, base: dict[str, Any], fields: dict[str, Any], jumps: bool
) -> None:
    frontend.post({**base, **fields}, path)
    sampling = frontend.backend.requests[-1].sampling
    assert (sampling.jump_forward, sampling.client) == (jumps, "127.0.0.1")
