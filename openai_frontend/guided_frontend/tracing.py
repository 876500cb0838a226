"""OpenTelemetry spans of generations: one for the request, below it one for the model and its stages.

The model's stages are told by the last event, as durations; they are placed so that they end when the answer did.
Their span is the parent of tritonserver's own, where that exports spans, too.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from guided_frontend.observe import Outcome, Record

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

_NAME = "guided_frontend"
_FAILED = (Outcome.TRANSPORT, Outcome.PARSE)


class Tracing:
    """Where spans go. Raises nothing once it is made: a collector that is away loses spans, not requests."""

    def __init__(self, provider: TracerProvider) -> None:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._provider, self._tracer = provider, provider.get_tracer(_NAME)
        self._propagator = TraceContextTextMapPropagator()

    @staticmethod
    def to(endpoint: str) -> Tracing | None:
        """Spans for the OTLP/HTTP collector at that URL; "" is none. Raises ValueError without the extra `tracing`."""
        if not endpoint:
            return None
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError as error:
            raise ValueError(f"trace_endpoint needs the extra 'tracing' of triton-guided: {error}") from None
        provider = TracerProvider(resource=Resource.create({"service.name": _NAME}))
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint)))
        return Tracing(provider)

    def begin(self, name: str, trace: Mapping[str, str]) -> tuple[Span, dict[str, str]]:
        """A span below the client's, and the trace context that continues it."""
        from opentelemetry import trace as api

        span = self._tracer.start_span(name, self._propagator.extract(trace), api.SpanKind.SERVER)
        carried: dict[str, str] = {}
        self._propagator.inject(carried, api.set_span_in_context(span))
        return span, carried

    def end(self, span: Span, record: Record) -> None:
        """Ends the request's span as the record tells it."""
        from opentelemetry.trace import StatusCode

        end = time.time_ns()
        spec = record.constraint.spec
        facts: dict[str, str | int | float] = {
            "guided.request_id": record.origin.request_id, "guided.outcome": record.outcome.value,
            "guided.constraint": spec.kind.value, "guided.constraint_field": record.constraint.field,
            "guided.check_seconds": record.compile_seconds, "http.response.status_code": record.status,
            "gen_ai.request.model": record.model,
        }  # fmt: skip
        if record.ended:
            facts["gen_ai.response.finish_reasons"] = record.rungs["termination"]
        for name, count in record.usage.items():
            facts[f"guided.{name}"] = count
        span.set_attributes(facts)
        if record.first_token is not None:
            span.add_event("first token", timestamp=end - _ns(record.end - record.first_token))
        if record.timings:
            self._model(span, record.timings, end)
        if record.outcome in _FAILED:
            span.set_status(StatusCode.ERROR, record.error.message if record.error is not None else None)
        span.end(end)

    def _model(self, parent: Span, timings: Mapping[str, float], end: int) -> None:
        """The engine's clock readings: seconds since the request's arrival there."""
        from opentelemetry import trace as api

        total, queue = _ns(timings.get("total", 0.0)), _ns(timings.get("queue", 0.0))
        first = max(queue, _ns(timings.get("first_token", 0.0)))
        context = api.set_span_in_context(parent)
        model = self._tracer.start_span("model", context, start_time=end - total)
        model.set_attribute("guided.compile_seconds", timings.get("compile", 0.0))
        inside = api.set_span_in_context(model)
        for name, start, stop in (("queue", 0, queue), ("prompt", queue, first), ("answer", first, total)):
            self._tracer.start_span(name, inside, start_time=end - total + start).end(end - total + stop)
        model.end(end)

    def close(self) -> None:
        """Sends what is left."""
        self._provider.shutdown()


def _ns(seconds: float) -> int:
    return int(seconds * 1e9)
