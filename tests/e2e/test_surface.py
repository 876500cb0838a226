"""The HTTP surface over the real engine: streams and whole answers, tags, the context, clients that misbehave."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from guided_testing.running_stack import RunningStack

TOOL = {
    "type": "function",
    "function": {
        "name": "look",
        "parameters": {"type": "object", "properties": {"q": {"type": "string", "maxLength": 12}}, "required": ["q"]},
    },
}
SCHEMA = {
    "type": "object",
    "properties": {"mood": {"enum": ["🙂", "🙁"]}, "n": {"type": "integer"}},
    "required": ["mood", "n"],
    "additionalProperties": False,  # short answers: without GUIDED_BATCH_INVARIANT a long one may round otherwise
}
MIXED: dict[str, dict[str, Any]] = {
    "free": {"max_tokens": 24},
    "schema_n": {"n": 3, "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA}}},
    "tool": {"tools": [TOOL], "tool_choice": "required", "max_tokens": 80},
    "tool_logprobs": {
        "tools": [TOOL],
        "tool_choice": "required",
        "logprobs": True,
        "top_logprobs": 2,
        "max_tokens": 80,
    },
    "logprobs": {"logprobs": True, "max_tokens": 16},
    "cut": {"response_format": {"type": "json_object"}, "max_tokens": 7},
}


def post(stack: RunningStack, **fields: Any) -> httpx.Response:
    body = {"messages": [{"role": "user", "content": "How are you?"}], "seed": 5, **fields}
    return httpx.post(f"{stack.url}/v1/chat/completions", json=body, timeout=120)


def whole(choice: dict[str, Any]) -> dict[str, Any]:
    message = choice["message"]
    calls = [(c["function"]["name"], c["function"]["arguments"]) for c in message.get("tool_calls") or ()]
    tokens = [t["bytes"] for t in (choice["logprobs"] or {"content": []})["content"]]
    return {"content": message["content"] or "", "calls": calls, "tokens": tokens, "end": choice["finish_reason"]}


def assembled(text: str) -> list[dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for line in text.splitlines():
        for choice in json.loads(line[6:])["choices"] if line.startswith("data: {") else ():
            held = found.setdefault(choice["index"], {"content": "", "calls": [], "tokens": [], "end": None})
            held["content"] += choice["delta"].get("content") or ""
            for call in choice["delta"].get("tool_calls", ()):
                if "id" in call:
                    held["calls"].append((call["function"]["name"], ""))
                name, arguments = held["calls"][call["index"]]
                held["calls"][call["index"]] = (name, arguments + call["function"]["arguments"])
            held["tokens"] += [token["bytes"] for token in (choice["logprobs"] or {"content": []})["content"]]
            held["end"] = choice["finish_reason"] or held["end"]
    return [found[index] for index in sorted(found)]


@pytest.mark.parametrize("fields", MIXED.values(), ids=MIXED)
def test_f7_an_assembled_stream_is_the_whole_answer_of_the_same_seed(
    stack: RunningStack, fields: dict[str, Any]
) -> None:
    expected = [whole(choice) for choice in post(stack, **fields).json()["choices"]]
    assert assembled(post(stack, stream=True, **fields).text) == expected


def test_structural_tags_hold(stack: RunningStack) -> None:
    tag = {"begin": "<n>", "content": {"type": "regex", "pattern": "[0-9]{1,3}"}, "end": "</n>"}
    tags = {"type": "triggered_tags", "triggers": ["<"], "tags": [tag], "at_least_one": True, "stop_after_first": True}
    for seed in range(3):
        answer = post(stack, seed=seed, response_format={"type": "structural_tag", "format": tags})
        assert re.fullmatch("<n>[0-9]{1,3}</n>", answer.json()["choices"][0]["message"]["content"])


def test_both_doors_tell_the_same_context(stack: RunningStack) -> None:
    context = httpx.get(f"{stack.url}/v1/models").json()["data"][0]["max_model_len"]
    told = post(stack, max_tokens=context).json()["error"]
    assert told["param"] == "max_tokens" and f"the context holds {context} tokens" in told["message"]
    body = {"text_input": "x", "sampling_parameters": json.dumps({"max_tokens": context})}
    engine = httpx.post(f"{stack.triton}/v2/models/guided_llm/generate", json=body, timeout=30)
    assert f"the context holds {context} tokens" in engine.text


@pytest.mark.parametrize("constraint", ["null", "[]", '{"kind": 3}'])
def test_a_constraint_that_is_none_is_refused_in_words(stack: RunningStack, constraint: str) -> None:
    answer = httpx.post(
        f"{stack.triton}/v2/models/guided_llm/generate", json={"text_input": "x", "constraint": constraint}, timeout=30
    )
    assert answer.status_code == 400 and "must be a JSON object whose kind is one of" in answer.text


LONG = {"messages": [{"role": "user", "content": "x"}], "stream": True, "guided_regex": "[a-z ]{3000,3050}"}


def opened(stack: RunningStack) -> socket.socket:
    """A client that has sent a long request and reads nothing."""
    raw = json.dumps(LONG).encode()
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", stack.port))
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {len(raw)}\r\n\r\n"
    client.sendall(head.encode() + raw)
    return client


def until(condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def rows(stack: RunningStack) -> float:
    return stack.metric("guided_running_rows")


def test_a_client_that_does_not_read_holds_up_nobody(stack: RunningStack) -> None:
    client = opened(stack)
    try:
        until(lambda: rows(stack) >= 1, 10)
        answer = post(stack, guided_choice=["yes", "no"])
        assert answer.status_code == 200 and answer.json()["choices"][0]["message"]["content"] in ("yes", "no")
    finally:
        client.close()
    until(lambda: rows(stack) == 0, 5)


def test_a_storm_of_clients_that_leave_frees_every_row(stack: RunningStack) -> None:
    for _ in range(3):
        clients = [opened(stack) for _ in range(20)]
        until(lambda: rows(stack) >= 1, 20)
        for client in clients:
            client.close()
    until(lambda: rows(stack) == 0, 15)
    assert post(stack, guided_choice=["yes", "no"]).status_code == 200
    assert httpx.get(f"{stack.url}/health/ready").status_code == 200
