"""Specs compiled in killable worker processes: bounded in time and memory, single flight, outcomes remembered."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field

from guided_grammar.compiler import Compiled
from guided_grammar.crew import Crew, PoolBusy, PoolClosed, result_of
from guided_grammar.limits import DEFAULT_LIMITS, Limits
from guided_grammar.losses import Kills, Losses
from guided_grammar.outcomes import Outcomes, OutcomeStats
from guided_grammar.spec import GrammarSpec
from guided_grammar.worker import Worker

__all__ = ["CompilePool", "PoolBusy", "PoolClosed", "PoolStats"]

_KEPT = 4096
_KEPT_BYTES = 64 << 20
_MOST_WAITING = 64
_JOIN_SECONDS = 2.0


@dataclass(frozen=True)
class PoolStats:
    """seconds: spent in workers. num_waiting: constraints without a worker now."""

    outcomes: OutcomeStats = field(default_factory=OutcomeStats)
    kills: Kills = field(default_factory=Kills)
    num_waiting: int = 0
    seconds: float = 0.0


class CompilePool:
    """Thread-safe. Equal specs asked for together compile once; clients that wait get workers in turn.

    workers: processes. seconds: wall clock of one compile. memory_bytes: address space of one worker.
    wait: seconds a compile waits for a free worker before PoolBusy.
    """

    def __init__(
        self,
        limits: Limits = DEFAULT_LIMITS,
        workers: int = 1,
        seconds: float = 5.0,
        memory_bytes: int = 2 << 30,
        wait: float = 5.0,
    ) -> None:
        self._limits, self._seconds, self._memory_bytes, self.wait = limits, seconds, memory_bytes, wait
        self._outcomes: Outcomes[str, Compiled] = Outcomes(_KEPT, _KEPT_BYTES, lambda compiled: len(compiled.text))
        self._losses, self._lock, self._spent, self._closed = Losses(), threading.Lock(), 0.0, False
        self._workers = [Worker(memory_bytes) for _ in range(workers)]
        self._crew = Crew(self._workers, _MOST_WAITING, "grammar-compile")

    @property
    def stats(self) -> PoolStats:
        """A snapshot of the counters."""
        return PoolStats(self._outcomes.stats, self._losses.kills, self._crew.num_waiting, self._spent)

    def compile(self, spec: GrammarSpec, client: str = "") -> Compiled:
        """`compile_spec` of the spec, waited for. Raises its GrammarError; LimitExceeded for a compile over `seconds`
        or `memory_bytes`; UnsupportedConstraint for one that crashes its worker; PoolBusy, PoolClosed."""
        return result_of(self.submit(spec, client), self.wait)

    def submit(self, spec: GrammarSpec, client: str = "") -> Future[Compiled]:
        """The future of `compile`; callers that ask for equal specs share it. client: whose turn it takes."""
        if self._closed:
            raise PoolClosed("the compile pool is closed")
        return self._outcomes.ask(spec.key, lambda: self._crew.submit(client, lambda worker: self._run(worker, spec)))

    def close(self) -> None:
        """Kill all workers; calls that wait or run end with PoolClosed or a refusal."""
        self._closed = True
        self._crew.close()
        for worker in self._workers:
            worker.close()
        self._crew.join(_JOIN_SECONDS)
        # a call that was just beginning has started its process again
        for worker in self._workers:
            worker.close()

    def _run(self, worker: Worker, spec: GrammarSpec) -> Compiled:
        started = time.monotonic()
        try:
            return self._losses.bounded(
                lambda: self._compiled(worker, spec), "compile", self._seconds, self._memory_bytes
            )
        finally:
            with self._lock:
                self._spent += time.monotonic() - started

    def _compiled(self, worker: Worker, spec: GrammarSpec) -> Compiled:
        if self._closed:
            raise PoolClosed("the compile pool is closed")
        compiled: Compiled = worker.call(
            "guided_grammar.compiler:compile_spec", spec, self._limits, seconds=self._seconds
        )
        return compiled
