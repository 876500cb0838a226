from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from guided_frontend.app import create_app
from guided_frontend.errors import Unavailable
from guided_frontend.served import ServedModel
from guided_frontend.settings import Settings
from guided_frontend.tracing import Tracing
from guided_testing.scripted_backend import Answer, ScriptedBackend, running
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from .conftest import Frontend

TRACE, PARENT = "ab" * 16, "cd" * 8


class Traced(Frontend):
    """A frontend whose spans stay in memory."""

    exporter: InMemorySpanExporter

    def spans(self) -> dict[str, ReadableSpan]:
        """Of one request; its own span ends last, and after the client has read a stream's end."""
        deadline = time.monotonic() + 5
        while not (spans := {span.name: span for span in self.exporter.get_finished_spans()}).get("chat"):
            assert time.monotonic() < deadline, spans
            time.sleep(0.005)
        return spans


@pytest.fixture
def traced(settings: Settings, model: ServedModel) -> Iterator[Traced]:
    exporter, provider, backend = InMemorySpanExporter(), TracerProvider(), ScriptedBackend()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with running(create_app(settings, backend, (model,), Tracing(provider))) as url:
        frontend = Traced(url, backend)
        frontend.exporter = exporter
        yield frontend
        frontend.close()


def ask(traced: Traced, **fields: Any) -> Any:
    body = {"messages": [{"role": "user", "content": "Hi"}], **fields}
    headers = {"traceparent": f"00-{TRACE}-{PARENT}-01", "x-request-id": "r-1"}
    return traced.http.post("/v1/chat/completions", json=body, headers=headers)


@pytest.mark.parametrize("is_stream", [False, True])
def test_d171_a_generation_is_a_span_below_the_clients_with_the_models_stages_below_it(
    traced: Traced, is_stream: bool
) -> None:
    traced.answers(Answer(('{"a": 1}',)))
    assert ask(traced, stream=is_stream, response_format={"type": "json_object"}).status_code == 200
    spans = traced.spans()
    assert set(spans) == {"chat", "model", "queue", "prompt", "answer"}
    chat, model = spans["chat"], spans["model"]
    assert chat.parent is not None and chat.context is not None and model.parent is not None
    assert (f"{chat.parent.span_id:x}", f"{chat.context.trace_id:x}") == (PARENT, TRACE)
    assert model.parent.span_id == chat.context.span_id
    attributes = chat.attributes or {}
    wanted = {"guided.request_id": "r-1", "guided.outcome": "ok", "guided.constraint": "json_object",
              "gen_ai.request.model": "smollm2", "gen_ai.response.finish_reasons": "stop"}  # fmt: skip
    assert wanted.items() <= dict(attributes).items()
    assert [event.name for event in chat.events] == ["first token"]


def test_the_server_is_sent_the_context_of_our_span(traced: Traced) -> None:
    ask(traced)
    context = traced.spans()["chat"].context
    assert context is not None
    assert traced.backend.origins[0].trace == {"traceparent": f"00-{TRACE}-{context.span_id:016x}-01"}


def test_the_stages_follow_each_other_inside_the_model(traced: Traced) -> None:
    ask(traced)
    spans = traced.spans()
    times = [(spans[name].start_time, spans[name].end_time) for name in ("queue", "prompt", "answer")]
    assert [start for start, _ in times[1:]] == [end for _, end in times[:-1]]
    assert (times[0][0], times[-1][1]) == (spans["model"].start_time, spans["model"].end_time)


def test_a_failed_generation_is_a_failed_span(traced: Traced) -> None:
    traced.answers(Answer(error=Unavailable("gone", label="transport")))
    assert ask(traced).status_code == 503
    span = traced.spans()["chat"]
    assert (span.status.is_ok, span.status.description) == (False, "gone")
    assert (span.attributes or {})["guided.outcome"] == "transport"


def test_a_refused_request_is_a_span_without_a_model(traced: Traced) -> None:
    assert ask(traced, guided_regex="(").status_code == 400
    assert set(traced.spans()) == {"chat"}


def test_nothing_is_traced_unless_asked_for(frontend: Frontend) -> None:
    assert Tracing.to(Settings().trace_endpoint) is None
    frontend.http.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": "Hi"}]})
    assert frontend.backend.origins[-1].trace == {}


def test_a_missing_extra_is_named_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(ValueError, match="extra 'tracing'"):
        Tracing.to("http://127.0.0.1:1/v1/traces")
