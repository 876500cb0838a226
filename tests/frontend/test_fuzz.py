"""Whatever the body, the answer is one of the documented ones."""

from __future__ import annotations

import json
from typing import Any

import httpx
import jsonschema
from guided_frontend.openapi import document
from guided_frontend.schemas import ChatRequest, CompletionRequest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .conftest import Frontend

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8) | st.sampled_from(["auto", "required", "text", "json_object", "function", "user", "tool", "(", "a"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["type", "function", "name", "content", "role", "schema", "json_schema", "parameters", "x",
                         "properties", "pattern", "text", "id", "tool_calls", "arguments", "$ref", "items", "enum"]),
        inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
CHAT = {f.alias or n: VALUES for n, f in ChatRequest.model_fields.items()}
TEXT = {f.alias or n: VALUES for n, f in CompletionRequest.model_fields.items()}
DOCUMENT = document("x", "1")
MESSAGE = {"role": "user", "content": "x"}
FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def check_documented(path: str, answer: httpx.Response) -> None:
    """The status is in the OpenAPI document, and the body is what the document says of it."""
    told = DOCUMENT["paths"][path]["post"]["responses"][str(answer.status_code)]["content"]
    media = answer.headers["content-type"].split(";")[0]
    if "schema" in told[media]:
        schema = {**told[media]["schema"], "components": DOCUMENT["components"]}
        jsonschema.Draft202012Validator(schema).validate(answer.json())


def check(frontend: Frontend, path: str, body: Any) -> None:
    answer = frontend.post(body, path)
    assert answer.status_code in (200, 400, 404), (answer.status_code, answer.text)
    check_documented(path, answer)
    if answer.status_code != 200:
        error = answer.json()["error"]
        assert error["code"] == answer.status_code and error["message"] and error["type"] == "invalid_request_error"
    elif isinstance(body, dict) and body.get("stream"):
        assert answer.text.endswith("data: [DONE]\n\n")


@FUZZ
@given(fields=st.fixed_dictionaries({}, optional=CHAT))
def test_any_chat_body_is_answered_or_refused(frontend: Frontend, fields: dict[str, Any]) -> None:
    check(frontend, "/v1/chat/completions", fields)


@FUZZ
@given(
    fields=st.lists(st.sampled_from(sorted(CHAT)), max_size=2).flatmap(
        lambda n: st.fixed_dictionaries(dict.fromkeys(n, VALUES))
    )
)
def test_any_field_beside_good_messages_is_answered_or_refused(frontend: Frontend, fields: dict[str, Any]) -> None:
    check(frontend, "/v1/chat/completions", {"messages": [MESSAGE], **fields})


@FUZZ
@given(fields=st.fixed_dictionaries({"prompt": VALUES}, optional={n: v for n, v in TEXT.items() if n != "prompt"}))
def test_any_text_body_is_answered_or_refused(frontend: Frontend, fields: dict[str, Any]) -> None:
    check(frontend, "/v1/completions", fields)


@FUZZ
@given(raw=st.binary(max_size=200) | VALUES.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_refused(frontend: Frontend, raw: bytes) -> None:
    for path in ("/v1/chat/completions", "/v1/completions", "/tokenize", "/v1/constraints/check"):
        answer = frontend.http.post(path, content=raw)
        assert answer.status_code in (200, 400), answer.text
        check_documented(path, answer)
