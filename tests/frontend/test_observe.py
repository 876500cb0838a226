from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from guided_frontend.edge import ApiKeys
from guided_frontend.errors import Busy, EngineError, Unavailable
from guided_frontend.served import ServedModel
from guided_frontend.settings import Settings
from guided_testing.scripted_backend import Answer, ScriptedBackend, serving

from .conftest import Frontend, served_by

Lines = Callable[[], dict[str, Any]]


@pytest.fixture
def line(caplog: pytest.LogCaptureFixture) -> Iterator[Lines]:
    """The one log line of the one request so far."""
    caplog.set_level(logging.INFO, "guided_frontend.requests")

    def read() -> dict[str, Any]:
        deadline = time.monotonic() + 3
        while not caplog.messages and time.monotonic() < deadline:
            time.sleep(0.01)
        [text] = [r.message for r in caplog.records if r.name == "guided_frontend.requests"]
        parsed: dict[str, Any] = json.loads(text)
        return parsed

    yield read


def test_d161_d166_a_request_leaves_one_line_with_the_six_fields(frontend: Frontend, line: Lines) -> None:
    frontend.answers(Answer(('{"a"', ": 1}")))
    frontend.ask(response_format={"type": "json_object"})
    told = line()
    assert told["finish_reason"] == "stop"
    assert told["backend"].startswith("xgrammar")
    assert told["rungs"] == {
        "termination": "stop",
        "parse": "passed",
        "schema": "enforced by the grammar",
        "semantic": "left to the client",
    }
    assert told["outcome"] == "ok" and "completions" not in told
    assert 0 < told["ttft_s"] <= told["total_s"] and told["per_token_s"] >= 0
    assert told["constraint"] == "json_object" and told["usage"]["completion_tokens"] == 2


JSON = {"response_format": {"type": "json_object"}}
ENDINGS: list[tuple[str, dict[str, Any], Answer, str]] = [
    ("ok", {}, Answer(), "ok"),
    ("length", JSON, Answer(('{"a',), "length"), "truncation"),
    ("length wins over an error of the text", {}, Answer(finish_reason="length"), "truncation"),
    ("refused", {"guided_regex": "("}, Answer(), "constraint_refused"),
    ("another 400", {"temperature": 3}, Answer(), "invalid_request"),
    ("complete but no JSON", JSON, Answer(("{",)), "parse_failure"),
    ("engine fault", {}, Answer(error=EngineError("x")), "transport"),
    ("away", {}, Answer(error=Unavailable("x")), "transport"),
    ("away in mid-stream", {"stream": True}, Answer(error=Unavailable("x"), error_after=1), "transport"),
    ("full", {}, Answer(error=Busy("x")), "overload"),
]


@pytest.mark.parametrize(("fields", "answer", "outcome"), [e[1:] for e in ENDINGS], ids=[e[0] for e in ENDINGS])
def test_d167_every_request_has_exactly_one_outcome(
    frontend: Frontend, line: Lines, fields: dict[str, Any], answer: Answer, outcome: str
) -> None:
    frontend.answers(answer)
    frontend.ask(**fields)
    assert line()["outcome"] == outcome


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_client_that_goes_is_an_outcome_of_its_own(frontend: Frontend, line: Lines, is_stream: bool) -> None:
    frontend.answers(Answer(("x",) * 500, pause=0.02))
    body = {"messages": [{"role": "user", "content": "x"}], "stream": is_stream}
    url = f"{frontend.url}/v1/chat/completions"
    with pytest.raises(httpx.ReadTimeout), httpx.stream("POST", url, json=body, timeout=0.3) as answer:
        for _ in answer.iter_bytes():
            raise httpx.ReadTimeout("enough")
    assert line()["outcome"] == "client_gone"


def test_the_request_id_comes_back_and_is_logged(frontend: Frontend, line: Lines) -> None:
    body = {"messages": [{"role": "user", "content": "x"}]}
    url = f"{frontend.url}/v1/chat/completions"
    assert httpx.post(url, json=body, headers={"x-request-id": "abc-1"}).headers["x-request-id"] == "abc-1"
    assert line()["request_id"] == "abc-1"


@pytest.mark.parametrize("given", ["", "two words", "x" * 129])
def test_a_request_id_that_cannot_be_used_is_replaced(frontend: Frontend, given: str) -> None:
    answer = httpx.get(f"{frontend.url}/v1/models", headers={"x-request-id": given})
    assert answer.headers["x-request-id"].startswith("req_")


TRACE = "00-" + "ab" * 16 + "-" + "cd" * 8 + "-01"


@pytest.mark.parametrize(
    ("headers", "passed"),
    [
        ({"traceparent": TRACE, "tracestate": "a=1"}, {"traceparent": TRACE, "tracestate": "a=1"}),
        ({"traceparent": TRACE, "triton_grpc_error": "true"}, {"traceparent": TRACE}),
        ({"traceparent": "00-xyz", "tracestate": "a=1"}, {}),
        ({"tracestate": "a=1"}, {}),
    ],
)
def test_only_a_well_formed_trace_context_reaches_the_server(
    frontend: Frontend, headers: dict[str, str], passed: dict[str, str]
) -> None:
    body = {"messages": [{"role": "user", "content": "x"}]}
    assert frontend.http.post("/v1/chat/completions", json=body, headers=headers).status_code == 200
    assert frontend.backend.origins[-1].trace == passed


def test_d168_d171_the_counters_behind_the_four_rates(settings: Settings, model: ServedModel) -> None:
    backend = ScriptedBackend(
        [Answer(), Answer((), "stop"), Answer(finish_reason="length"), Answer(error=EngineError("x"))]
    )
    with served_by(settings, backend, model) as frontend:
        for _ in range(4):
            frontend.ask()
        frontend.ask(guided_regex="(")
        text = frontend.http.get("/metrics").text
    for outcome, count in [("ok", 2), ("truncation", 1), ("transport", 1)]:
        assert f'requests_total{{constraint="free",endpoint="chat",outcome="{outcome}"}} {count}.0' in text
    assert 'guided_frontend_zero_token_total{constraint="free",endpoint="chat"} 1.0' in text
    assert "guided_frontend_refusals_total{keyword=" in text
    assert 'guided_frontend_first_token_seconds_count{constraint="free",endpoint="chat"} 3.0' in text
    assert "guided_frontend_running 0.0" in text


def test_d165_completions_are_logged_only_when_asked_for(model: ServedModel, line: Lines) -> None:
    backend = ScriptedBackend()
    with served_by(Settings(log_completions=True), backend, model) as frontend:
        frontend.ask()
    assert line()["completions"] == ["Hello there!"]


@pytest.fixture
def keys(tmp_path: Path) -> str:
    path = tmp_path / "keys"
    path.write_text("".join(hashlib.sha256(key).hexdigest() + "\n" for key in (b"one", b"two")))
    return str(path)


def test_with_a_key_file_only_its_keys_are_let_in(model: ServedModel, keys: str) -> None:
    backend = ScriptedBackend()
    with serving(Settings(api_keys=keys), backend, model) as url:
        for header, status in [
            ("Bearer one", 200),
            ("bearer two", 200),
            ("Bearer three", 401),
            ("one", 401),
            ("", 401),
        ]:
            answer = httpx.get(f"{url}/v1/models", headers={"authorization": header})
            assert answer.status_code == status
            if status == 401:
                assert answer.json()["error"]["type"] == "authentication_error" and answer.headers["x-request-id"]
        for path in ("/health", "/health/ready", "/metrics", "/version"):
            assert httpx.get(url + path).status_code == 200


@pytest.mark.parametrize("content", ["", "xyz", "abcd"])
def test_a_key_file_without_digests_stops_the_start(tmp_path: Path, content: str) -> None:
    path = tmp_path / "keys"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"digest|hexadecimal"):
        ApiKeys.read(str(path))
