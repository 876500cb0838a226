"""No constraint can hurt the server: the hostile corpus against the live stack."""

from __future__ import annotations

import json
import time
from typing import Any

import httpx
import pytest
from guided_testing.hostile import hostile_bodies, hostile_fields
from guided_testing.running_stack import RunningStack

_SECONDS = 10.0


def post(stack: RunningStack, body: bytes) -> httpx.Response:
    begin = time.monotonic()
    answer = httpx.post(
        f"{stack.url}/v1/chat/completions", content=body, headers={"Content-Type": "application/json"}, timeout=60
    )
    took = time.monotonic() - begin
    assert took < _SECONDS, f"answered {answer.status_code} after {took:.1f} s"
    return answer


@pytest.mark.parametrize(("name", "fields"), hostile_fields().items(), ids=list(hostile_fields()))
def test_a_hostile_constraint_is_answered_in_time(stack: RunningStack, name: str, fields: dict[str, Any]) -> None:
    body = {"messages": [{"role": "user", "content": "Go."}], "max_tokens": 8, **fields}
    answer = post(stack, json.dumps(body).encode())
    assert answer.status_code in (200, 400), answer.text[:500]
    if answer.status_code == 400:
        error = answer.json()["error"]
        assert error["type"] == "invalid_request_error" and error["code"] == 400 and len(error["message"]) < 1000


@pytest.mark.parametrize(("name", "body"), hostile_bodies().items(), ids=list(hostile_bodies()))
def test_a_hostile_body_is_answered_in_time(stack: RunningStack, name: str, body: bytes) -> None:
    answer = post(stack, body)
    assert answer.status_code in (200, 400, 413), answer.text[:500]
    if answer.status_code != 200:
        assert answer.json()["error"]["code"] == answer.status_code


def test_the_server_still_serves_afterwards(stack: RunningStack) -> None:
    body = {"messages": [{"role": "user", "content": "Is fire hot?"}], "guided_choice": ["yes", "no"]}
    answer = post(stack, json.dumps(body).encode())
    assert answer.json()["choices"][0]["message"]["content"] in ("yes", "no")
