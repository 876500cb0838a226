"""What the engine reports to Triton's /metrics."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from guided_engine.engine import Output
    from guided_engine.grammars import GrammarStats
    from guided_engine.scheduler import Scheduler

CANCELLED = 499
VERSIONS = "guided_versions"
_FLUSH_SECONDS = 0.25
_TTFT = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_PER_TOKEN = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5, 1.0)
_COMPILE = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)

GAUGES = {
    "guided_running_rows": "choices in the running batch",
    "guided_waiting_choices": "choices that wait for a row",
    "guided_kv_tokens": "tokens of the running rows",
    "guided_grammar_cache_bytes": "bytes of compiled grammars kept",
    "guided_grammar_cache_entries": "compiled grammars kept",
    "guided_grammar_waiting": "constraints that wait for a worker process",
    VERSIONS: "1; its labels are the versions of the libraries",
    "guided_healthy": "1 while the engine runs, 0 after a fault",
}
STAGES = {
    "schedule": "time to choose who runs",
    "forward": "time in the model; on a GPU the launch only",
    "mask": "time to fill grammar masks",
    "head": "time in the output head",
    "sample": "time to draw; on a GPU the wait for the model too",
    "commit": "time to accept tokens and hand events over",
}
"""Of a step, in its order."""
COUNTERS = {
    "guided_generated_tokens_total": "tokens sent, forced ones included",
    "guided_forced_tokens_total": "tokens that the grammar forced",
    "guided_steps_total": "forward passes",
    **{f"guided_{stage}_seconds_total": text for stage, text in STAGES.items()},
    "guided_requests_total": "requests that reached the engine",
    "guided_constrained_requests_total": "of these, with a constraint",
    "guided_stopped_choices_total": "choices that ended with stop",
    "guided_truncated_choices_total": "choices that ended with length",
    "guided_cancelled_requests_total": "requests that their client gave up",
    "guided_failed_requests_total": "requests that ended with an error",
    "guided_preempted_choices_total": "choices sent back to the queue for want of cache",
    "guided_refused_constraints_total": "constraints refused",
    "guided_grammar_cache_hits_total": "compiled grammar found in the cache",
    "guided_grammar_cache_misses_total": "compiled grammar not found in the cache",
    "guided_grammar_cache_evictions_total": "compiled grammars dropped for want of room",
    "guided_grammar_text_seconds_total": "time in workers to turn constraints into grammar text",
    "guided_grammar_proof_seconds_total": "time in workers to prove grammars quick",
    "guided_grammar_build_seconds_total": "time to make masks of proven grammars",
    "guided_grammar_kills_time_total": "workers killed because a constraint took too long",
    "guided_grammar_kills_memory_total": "workers lost to a constraint that took too much memory",
    "guided_grammar_kills_crash_total": "workers lost to a crash, or killed from outside",
    "guided_fill_seconds_total": "CPU time of masks, over all rows",
    "guided_filled_rows_total": "masks made, one for each constrained row of a step",
    "guided_over_budget_rows_total": "rows ended because their masks took too long",
}
HISTOGRAMS = {
    "guided_time_to_first_token_seconds": ("arrival to first token", _TTFT),
    "guided_time_per_output_token_seconds": ("mean time between tokens of one choice", _PER_TOKEN),
    "guided_grammar_compile_seconds": ("constraint to matcher, caches included", _COMPILE),
}


class Backend(Protocol):
    """Where numbers go; every method may be called from any thread."""

    def set(self, name: str, value: float) -> None: ...

    def add(self, name: str, value: float) -> None: ...

    def observe(self, name: str, value: float) -> None: ...


class StageClock:
    """Seconds of each stage of a step; `now` is the clock to read."""

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self._now = now
        self._laps: dict[str, float] = {}
        self._last = 0.0

    def start(self) -> None:
        self._last = self._now()

    def lap(self, stage: str) -> None:
        """The time since the last call belongs to `stage`."""
        now = self._now()
        self._laps[stage] = self._laps.get(stage, 0.0) + now - self._last
        self._last = now

    def take(self) -> dict[str, float]:
        """The stages of this step; the clock is empty afterwards."""
        laps, self._laps = self._laps, {}
        return laps


class Metrics:
    """Collects per step and hands over a few times a second: one call to Triton costs as much as a token's mask.

    grammars: asked for its counters whenever something is handed over; None for an engine without constraints.
    """

    def __init__(self, backend: Backend, grammars: Callable[[], GrammarStats] | None = None) -> None:
        self._backend, self._grammars = backend, grammars
        self._lock, self._published = threading.Lock(), dict[str, float]()
        self._totals: dict[str, float] = {}
        self._gauges: dict[str, float] = {}
        self._flushed = 0.0
        backend.set("guided_healthy", 1)

    def step(self, scheduler: Scheduler, outputs: Sequence[Output], stages: Mapping[str, float]) -> None:
        """Called by the engine's thread after each step; stages: seconds of each."""
        if "forward" in stages:
            self._count("guided_steps_total", 1)
        for stage, seconds in stages.items():
            self._count(f"guided_{stage}_seconds_total", seconds)
        for output in outputs:
            self._output(output)
        self._total("guided_preempted_choices_total", scheduler.num_preempted)
        self._total("guided_cancelled_requests_total", scheduler.num_cancelled)
        gauges = {"guided_running_rows": scheduler.num_running, "guided_waiting_choices": scheduler.num_waiting}
        changed = any(self._gauges.get(name) != value for name, value in gauges.items())
        if changed or time.monotonic() - self._flushed > _FLUSH_SECONDS:
            self._flush({**gauges, "guided_kv_tokens": scheduler.num_tokens})

    def accepted(self, constrained: bool) -> None:
        self._backend.add("guided_requests_total", 1)
        if constrained:
            self._backend.add("guided_constrained_requests_total", 1)

    def refused(self) -> None:
        self._backend.add("guided_refused_constraints_total", 1)
        self._publish()

    def compiled(self, seconds: float, stats: GrammarStats) -> None:
        """A constraint became matchers."""
        self._backend.observe("guided_grammar_compile_seconds", seconds)
        self._publish(stats)

    def fault(self) -> None:
        self._backend.set("guided_healthy", 0)

    def _output(self, output: Output) -> None:
        event, timings = output.event, output.request.timings
        if event is None:
            # a client that left is counted by itself
            failed = output.error is not None and output.error.status != CANCELLED
            self._count("guided_failed_requests_total", int(failed))
            return
        self._count("guided_generated_tokens_total", len(event.token_ids))
        if event.finish_reason is None or event.usage is None or event.timings is None:
            return
        self._count("guided_forced_tokens_total", event.usage["forced_tokens"])
        stopped = event.finish_reason == "stop"
        self._count("guided_stopped_choices_total" if stopped else "guided_truncated_choices_total", 1)
        if event.index == 0:
            self._backend.observe("guided_time_to_first_token_seconds", event.timings["first_token"])
        if event.usage["completion_tokens"] > 1:
            decoding = event.timings["total"] - (timings.first_token - timings.arrival)
            each = decoding / (event.usage["completion_tokens"] - 1)
            self._backend.observe("guided_time_per_output_token_seconds", each)

    def _count(self, name: str, value: float) -> None:
        self._totals[name] = self._totals.get(name, 0) + value

    def _total(self, name: str, value: float) -> None:
        """A counter whose whole value is kept elsewhere."""
        seen = self._gauges.get(name, 0)
        if value > seen:
            self._gauges[name] = value
            self._count(name, value - seen)

    def _publish(self, known: GrammarStats | None = None) -> None:
        """The counters of the grammars, as far as they have changed. Called from any thread."""
        stats = self._grammars() if self._grammars is not None else known
        if stats is None:
            return
        with self._lock:
            for name, value in gauges_of(stats).items():
                if self._published.get(name) != value:
                    self._backend.set(name, value)
                    self._published[name] = value
            for name, value in totals_of(stats).items():
                more = value - self._published.get(name, 0.0)
                if more > 0:
                    self._backend.add(name, more)
                    self._published[name] = value

    def _flush(self, gauges: dict[str, float]) -> None:
        self._publish()
        for name, value in gauges.items():
            if self._gauges.get(name) != value:
                self._gauges[name] = value
                self._backend.set(name, value)
        for name, value in self._totals.items():
            self._backend.add(name, value)
        self._totals.clear()
        self._flushed = time.monotonic()


def gauges_of(stats: GrammarStats) -> dict[str, float]:
    """What is held now, by metric."""
    return {
        "guided_grammar_cache_bytes": stats.cache.bytes,
        "guided_grammar_cache_entries": stats.cache.entries,
        "guided_grammar_waiting": stats.num_waiting,
    }


def totals_of(stats: GrammarStats) -> dict[str, float]:
    """What has happened since the start, by metric."""
    cache, kills = stats.cache, stats.kills
    return {
        "guided_grammar_cache_hits_total": cache.hits,
        "guided_grammar_cache_misses_total": cache.misses,
        "guided_grammar_cache_evictions_total": cache.evictions,
        "guided_grammar_text_seconds_total": stats.text_seconds,
        "guided_grammar_proof_seconds_total": stats.proof_seconds,
        "guided_grammar_build_seconds_total": cache.compile_seconds,
        "guided_grammar_kills_time_total": kills.time,
        "guided_grammar_kills_memory_total": kills.memory,
        "guided_grammar_kills_crash_total": kills.crash,
        "guided_fill_seconds_total": stats.fill_seconds,
        "guided_filled_rows_total": stats.num_masks,
        "guided_over_budget_rows_total": stats.num_over_budget,
    }
