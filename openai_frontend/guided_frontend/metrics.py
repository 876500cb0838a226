"""Prometheus counters and histograms of the HTTP side. The engine exports its own through the server."""

from __future__ import annotations

from collections.abc import Callable

from guided_grammar.pool import PoolStats
from guided_grammar.spec import FREE
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from guided_frontend.grammar_metrics import GrammarCollector
from guided_frontend.observe import Outcome, Record

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_KEYWORDS = 200


class Metrics:
    """One application's metrics, in a registry of their own.

    The four alert rates over `guided_frontend_requests_total` (validity, truncation, transport) and
    `guided_frontend_zero_token_total`, each divided by all requests of the constraint.
    """

    def __init__(self, num_queued: Callable[[], float], grammars: Callable[[], PoolStats] = PoolStats) -> None:
        registry = self._registry = CollectorRegistry()
        name = "guided_frontend_"
        by = ["endpoint", "constraint"]
        self._requests = Counter(f"{name}requests", "Requests by outcome.", [*by, "outcome"], registry=registry)
        self._refusals = Counter(f"{name}refusals", "Refused constraints by keyword.", ["keyword"], registry=registry)
        self._keywords: set[str] = set()
        self._zero = Counter(f"{name}zero_token", "Answers without a token.", by, registry=registry)
        self._tokens = Counter(f"{name}tokens", "Tokens read and written.", ["kind"], registry=registry)
        self._running = Gauge(f"{name}running", "Requests being served.", registry=registry)
        self._checked = Counter(f"{name}checked_answers", "Answers judged twice.", ["verdict"], registry=registry)
        queued = Gauge(f"{name}queued", "Requests waiting for a slot.", registry=registry)
        queued.set_function(num_queued)
        self._first = self._histogram(f"{name}first_token_seconds", "Time to the first token.", by)
        self._between = self._histogram(f"{name}per_token_seconds", "Mean time per token after the first.", by)
        self._total = self._histogram(f"{name}request_seconds", "Whole requests.", by)
        self._compile = self._histogram(f"{name}compile_seconds", "Constraint checks that were not remembered.", by)
        self._queue = self._histogram(f"{name}engine_queue_seconds", "Waiting in the engine's queue.", by)
        registry.register(GrammarCollector(grammars))

    def _histogram(self, name: str, text: str, labels: list[str]) -> Histogram:
        return Histogram(name, text, labels, buckets=_SECONDS, registry=self._registry)

    def started(self) -> None:
        self._running.inc()

    def checked(self, verdict: str) -> None:
        self._checked.labels(verdict).inc()

    def finished(self, record: Record) -> None:
        """Counts a request that has ended."""
        self._running.dec()
        by = (record.endpoint, record.constraint.spec.kind.value)
        self._requests.labels(*by, record.outcome.value).inc()
        self._total.labels(*by).observe(record.end - record.start)
        if record.outcome is Outcome.REFUSED and record.error is not None:
            self._refusals.labels(self._bounded(record.error.keyword)).inc()
        if record.constraint.spec is not FREE and record.compile_seconds:
            self._compile.labels(*by).observe(record.compile_seconds)
        if record.ended:
            self._answered(record, by)

    def _bounded(self, keyword: str) -> str:
        """A keyword can be a name of the client's (a grammar rule): only so many become labels."""
        if len(self._keywords) < _KEYWORDS:
            self._keywords.add(keyword)
        return keyword if keyword in self._keywords else "other"

    def _answered(self, record: Record, by: tuple[str, str]) -> None:
        written = record.usage.get("completion_tokens", 0)
        self._tokens.labels("prompt").inc(record.usage.get("prompt_tokens", 0))
        self._tokens.labels("completion").inc(written)
        self._zero.labels(*by).inc(written == 0)
        self._queue.labels(*by).observe(record.timings.get("queue", 0.0))
        if record.first_token is not None:
            self._first.labels(*by).observe(record.first_token - record.start)
        if record.seconds_per_token is not None:
            self._between.labels(*by).observe(record.seconds_per_token)

    def text(self) -> bytes:
        """Prometheus' text format."""
        return generate_latest(self._registry)
