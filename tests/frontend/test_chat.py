from __future__ import annotations

import json
import time
from typing import Any

import httpx
import openai
import pytest
from guided_engine.protocol import RequestError
from guided_frontend.errors import Timeout, of_engine
from guided_testing.scripted_backend import Answer
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from .conftest import Frontend

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
TOOL = {"type": "function", "function": {"name": "add", "parameters": SCHEMA}}
USER: list[Any] = [{"role": "user", "content": "Hi"}]
CALL = ('<tool_call>\n{"na', 'me": "add", "arg', 'uments": {"n"', ": 12}}\n</tool_", "call>")


def stream(frontend: Frontend, **fields: Any) -> list[Any]:
    """The parsed events of a streamed answer; [DONE] is the string."""
    text = frontend.ask(stream=True, **fields).text
    lines = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]


def test_a_whole_answer_is_openais_object(frontend: Frontend) -> None:
    body = frontend.ask(model="smollm2").json()
    reply = ChatCompletion.model_validate(body, strict=True)
    assert set(body) == {"id", "object", "created", "model", "system_fingerprint", "choices", "usage"}
    assert reply.choices[0].message.content == "Hello there!" and reply.choices[0].finish_reason == "stop"
    assert reply.model == "smollm2" and reply.id.startswith("chatcmpl-")
    assert reply.usage is not None and reply.usage.total_tokens == reply.usage.prompt_tokens + 3


def test_a_streamed_answer_is_openais_chunks(frontend: Frontend) -> None:
    *chunks, done = stream(frontend)
    parsed = [ChatCompletionChunk.model_validate(chunk, strict=True) for chunk in chunks]
    assert done == "[DONE]"
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert "".join(c.choices[0].delta.content or "" for c in parsed) == "Hello there!"
    assert [c.choices[0].finish_reason for c in parsed] == [None] * 4 + ["stop"]
    assert chunks[-1]["choices"][0]["delta"] == {} and len({c.id for c in parsed}) == 1
    assert all("usage" not in chunk for chunk in chunks)


def test_include_usage_gives_null_on_every_chunk_but_a_last_one_without_choices(frontend: Frontend) -> None:
    *chunks, last, _ = stream(frontend, stream_options={"include_usage": True})
    assert all(chunk["usage"] is None for chunk in chunks)
    assert last["choices"] == [] and last["usage"]["completion_tokens"] == 3


@pytest.mark.parametrize("n", [1, 3])
def test_p7_every_choice_of_n_is_answered_whole_and_streamed(frontend: Frontend, n: int) -> None:
    whole = frontend.client.chat.completions.create(model="smollm2", messages=USER, n=n)
    assert [c.index for c in whole.choices] == list(range(n))
    texts = {c.message.content for c in whole.choices}
    streamed = ["" for _ in range(n)]
    for chunk in frontend.client.chat.completions.create(model="smollm2", messages=USER, n=n, stream=True):
        for choice in chunk.choices:
            streamed[choice.index] += choice.delta.content or ""
    assert texts == {"Hello there!"} == set(streamed)
    assert frontend.backend.requests[0].sampling.n == n


@pytest.mark.parametrize("finish", ["stop", "length"])
def test_length_is_never_masked_by_tool_calls(frontend: Frontend, finish: str) -> None:
    frontend.answers(Answer(CALL, finish))
    choice = frontend.ask(tools=[TOOL], tool_choice="required").json()["choices"][0]
    assert choice["finish_reason"] == {"stop": "tool_calls", "length": "length"}[finish]
    assert choice["message"]["content"] is None
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"n": 12}'}


def test_a_streamed_call_names_itself_once_and_then_sends_arguments(frontend: Frontend) -> None:
    frontend.answers(Answer(CALL))
    *chunks, _ = stream(frontend, tools=[TOOL], tool_choice="required")
    calls = [call for c in chunks for call in c["choices"][0]["delta"].get("tool_calls", [])]
    assert calls[0]["type"] == "function" and calls[0]["id"].startswith("call_")
    assert calls[0]["function"] == {"name": "add", "arguments": ""}
    assert all(set(call) == {"index", "function"} and set(call["function"]) == {"arguments"} for call in calls[1:])
    assert "".join(call["function"]["arguments"] for call in calls) == '{"n": 12}'
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_the_sdk_accumulates_a_streamed_call(frontend: Frontend) -> None:
    frontend.answers(Answer(("One moment.", *CALL, "\n", *CALL)))
    with frontend.client.chat.completions.stream(model="smollm2", messages=USER, tools=[TOOL]) as events:  # type: ignore[list-item]
        for _ in events:
            pass
        message = events.get_final_completion().choices[0].message
    assert message.content == "One moment." and message.tool_calls is not None
    assert [call.function.arguments for call in message.tool_calls] == ['{"n": 12}'] * 2


@pytest.mark.parametrize("is_stream", [False, True])
def test_logprobs_carry_the_bytes_of_the_vocabulary_in_calls_too(frontend: Frontend, is_stream: bool) -> None:
    frontend.answers(Answer(CALL))
    fields = {"tools": [TOOL], "tool_choice": "required", "logprobs": True, "top_logprobs": 2}
    if is_stream:
        held = [c["choices"][0]["logprobs"] for c in stream(frontend, **fields)[:-1]]
        entries = [entry for logprobs in held if logprobs for entry in logprobs["content"]]
    else:
        entries = frontend.ask(**fields).json()["choices"][0]["logprobs"]["content"]
    assert b"".join(bytes(entry["bytes"]) for entry in entries) == "".join(CALL).encode()
    assert all(len(entry["top_logprobs"]) == 2 for entry in entries)


def test_f75_the_exact_body(frontend: Frontend) -> None:
    answer = frontend.ask(tools=[TOOL], tool_choice={"type": "function", "function": {"name": "nope"}})
    message = 'tool_choice names function "nope" which is not in tools'
    assert answer.status_code == 400
    assert answer.json() == {"error": {"message": message, "type": "invalid_request_error", "code": 400}}


def test_f76_the_sdk_raises_bad_request_error(frontend: Frontend) -> None:
    with pytest.raises(openai.BadRequestError, match="temperature"):
        frontend.client.chat.completions.create(model="smollm2", messages=USER, temperature=9)


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("p1", {"guided_regex": "(unclosed"}, "guided_regex"),
    ("p2", {"guided_json": {"type": "nonsense"}}, "guided_json"),
    ("p3", {"guided_choice": []}, "guided_choice"),
    ("p4", {"guided_grammar": "start ::= x"}, "guided_grammar"),
    ("p5", {"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": 3}}}}, "response_format"),
    ("tools", {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": 3}}}]}, "tools"),
]


@pytest.mark.parametrize(("fields", "param"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
@pytest.mark.parametrize("is_stream", [False, True])
def test_p6_an_invalid_constraint_is_a_400_with_the_engine_down(
    frontend: Frontend, fields: dict[str, Any], param: str, is_stream: bool
) -> None:
    frontend.backend.is_up = False
    frontend.backend.requests.clear()
    answer = frontend.ask(stream=is_stream, **fields)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)
    assert param in answer.json()["error"]["message"] and frontend.backend.requests == []


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_model_that_is_down_is_a_503_with_retry_after(frontend: Frontend, is_stream: bool) -> None:
    frontend.backend.is_up = False
    answer = frontend.ask(stream=is_stream)
    assert answer.status_code == 503 and int(answer.headers["retry-after"]) > 0
    assert answer.json()["error"]["type"] == "server_error"


def test_an_error_after_the_first_chunk_is_an_event_in_the_same_envelope(frontend: Frontend) -> None:
    frontend.answers(Answer(error=Timeout("too slow"), error_after=2))
    *chunks, last = stream(frontend)
    assert "".join(c["choices"][0]["delta"].get("content", "") for c in chunks) == "Hello there"
    assert last == {"error": {"message": "too slow", "type": "timeout_error", "code": 408}}
    frontend.answers(Answer(error=Timeout("too slow"), error_after=2))
    with pytest.raises(openai.APIError, match="too slow"):
        list(frontend.client.chat.completions.create(model="smollm2", messages=USER, stream=True))


@pytest.mark.parametrize("status", [400, 429, 500, 503])
def test_an_engines_error_keeps_its_status(frontend: Frontend, status: int) -> None:
    frontend.answers(Answer(error=of_engine(RequestError("engine says", status, "messages"))))
    answer = frontend.ask()
    assert answer.status_code == status and answer.json()["error"]["message"] == "engine says"
    assert ("retry-after" in answer.headers) == (status in (429, 503))


def test_a_wait_in_the_engines_queue_that_was_too_long_is_a_503(frontend: Frontend) -> None:
    frontend.answers(Answer(error=of_engine(RequestError("waited too long", 504))))
    answer = frontend.ask()
    assert answer.status_code == 503 and "retry-after" in answer.headers


def test_a_constraint_that_only_the_engine_refuses_names_the_requests_field(frontend: Frontend) -> None:
    detail = {"code": "limit_exceeded", "keyword": "pattern"}
    frontend.answers(Answer(error=of_engine(RequestError("too large", 400, "constraint", detail))))
    assert frontend.ask(guided_regex="a").json()["error"]["param"] == "guided_regex"


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_client_that_goes_away_cancels_the_generation(frontend: Frontend, is_stream: bool) -> None:
    frontend.answers(Answer(("x",) * 1000, pause=0.02))
    body = {"messages": USER, "stream": is_stream}
    url = f"{frontend.url}/v1/chat/completions"
    with pytest.raises(httpx.ReadTimeout), httpx.stream("POST", url, json=body, timeout=0.3) as answer:
        for _ in answer.iter_bytes():
            if is_stream:
                raise httpx.ReadTimeout("enough")
    deadline = time.monotonic() + 3
    while frontend.backend.cancelled == 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert (frontend.backend.cancelled, frontend.backend.running) == (1, 0)


def test_models_lists_every_name_and_a_missing_model_is_the_first(frontend: Frontend) -> None:
    assert [m.id for m in frontend.client.models.list()] == ["smollm2", "default"]
    assert frontend.ask().json()["model"] == "smollm2"


def test_an_unknown_model_is_a_404_that_names_the_served_ones(frontend: Frontend) -> None:
    answer = frontend.ask(model="gpt-4")
    assert answer.status_code == 404 and "smollm2" in answer.json()["error"]["message"]


def test_readiness_follows_the_model_and_health_does_not(frontend: Frontend) -> None:
    assert httpx.get(f"{frontend.url}/health/ready").status_code == 200
    frontend.backend.is_up = False
    assert httpx.get(f"{frontend.url}/health/ready").status_code == 503
    assert httpx.get(f"{frontend.url}/health").status_code == 200


def test_f82_an_unconstrained_request_sends_no_constraint(frontend: Frontend) -> None:
    frontend.ask()
    frontend.ask(tools=[TOOL], tool_choice="none")
    assert [r.constraint for r in frontend.backend.requests] == ["", ""]


@pytest.mark.parametrize(
    ("path", "method", "status"), [("/v1/nothing", "GET", 404), ("/v1/chat/completions", "GET", 405)]
)
def test_paths_and_methods_that_do_not_exist_use_the_envelope(
    frontend: Frontend, path: str, method: str, status: int
) -> None:
    answer = httpx.request(method, frontend.url + path)
    assert answer.status_code == status and answer.json()["error"]["type"] == "invalid_request_error"


def test_a_body_over_the_limit_is_a_413(frontend: Frontend) -> None:
    assert frontend.ask(user="x" * 100_001).status_code == 413


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[]", b'"x"', b"\xff", b'{"n": NaN}', b'{"messages": "\\ud800"}', b"[" * 100_000], ids=repr
)
def test_a_body_that_is_no_json_object_is_a_400(frontend: Frontend, raw: bytes) -> None:
    answer = httpx.post(f"{frontend.url}/v1/chat/completions", content=raw[:90_000])
    assert answer.status_code == 400 and answer.json()["error"]["type"] == "invalid_request_error"
