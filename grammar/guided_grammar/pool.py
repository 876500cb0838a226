"""Specs compiled in killable worker processes: bounded in time and memory, single flight, outcomes remembered."""

from __future__ import annotations

import queue
import threading
import time
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import dataclass

from guided_grammar.compiler import Compiled
from guided_grammar.errors import GrammarError, LimitExceeded
from guided_grammar.limits import DEFAULT_LIMITS, Limits
from guided_grammar.spec import GrammarSpec
from guided_grammar.worker import Worker, WorkerDied, WorkerTimeout

_KEPT = 1024
_KEPT_BYTES = 64 << 20
_REFUSED_SECONDS = 60.0


class PoolBusy(Exception):
    """No worker became free in time: the caller may try again."""


class PoolClosed(Exception):
    """The pool was closed while or before the call."""


@dataclass(frozen=True)
class _Outcome:
    """`at`: when it was known, monotonic seconds; refusals are forgotten after a while, results are not."""

    result: Compiled | GrammarError
    at: float


class CompilePool:
    """Thread-safe. `compile` blocks its caller; equal specs asked for together compile once.

    workers: processes. seconds: wall clock of one compile. memory_bytes: address space of one worker.
    wait: seconds a compile waits for a free worker before PoolBusy.
    """

    def __init__(
        self,
        limits: Limits = DEFAULT_LIMITS,
        workers: int = 1,
        seconds: float = 5.0,
        memory_bytes: int = 2 << 30,
        wait: float = 30.0,
    ) -> None:
        self._limits, self._seconds, self._memory_bytes, self._wait = limits, seconds, memory_bytes, wait
        self._free: queue.LifoQueue[Worker] = queue.LifoQueue()
        self._workers = [Worker(memory_bytes) for _ in range(workers)]
        for worker in self._workers:
            self._free.put(worker)
        self._lock = threading.Lock()
        self._known: OrderedDict[str, _Outcome] = OrderedDict()
        self._known_bytes = 0
        self._running: dict[str, Future[Compiled]] = {}
        self._closed = False

    def compile(self, spec: GrammarSpec) -> Compiled:
        """`compile_spec` of the spec. Raises its GrammarError; LimitExceeded for a compile over `seconds` or
        `memory_bytes`; PoolBusy, PoolClosed."""
        key = spec.key
        with self._lock:
            if self._closed:
                raise PoolClosed("the compile pool is closed")
            known = self._recall(key)
            running = self._running.get(key)
            future: Future[Compiled] = running or Future()
            if known is None and running is None:
                self._running[key] = future
        if isinstance(known, GrammarError):
            raise known
        if known is not None:
            return known
        if running is None:
            self._run(key, spec, future)
        return future.result()

    def close(self) -> None:
        """Kill all workers; calls that wait or run end with PoolClosed or a refusal."""
        with self._lock:
            self._closed = True
        for worker in self._workers:
            worker.close()

    def _recall(self, key: str) -> Compiled | GrammarError | None:
        outcome = self._known.get(key)
        if outcome is None:
            return None
        if isinstance(outcome.result, GrammarError) and time.monotonic() - outcome.at > _REFUSED_SECONDS:
            self._forget(key)
            return None
        self._known.move_to_end(key)
        return outcome.result

    def _run(self, key: str, spec: GrammarSpec, future: Future[Compiled]) -> None:
        error: BaseException | None = None
        try:
            result: Compiled | GrammarError = self._compile(spec)
        except GrammarError as refusal:
            result = refusal
        except BaseException as failure:
            error = failure
        with self._lock:
            del self._running[key]
            if error is None:
                self._remember(key, result)
        if error is not None:
            future.set_exception(error)
        elif isinstance(result, GrammarError):
            future.set_exception(result)
        else:
            future.set_result(result)

    def _compile(self, spec: GrammarSpec) -> Compiled:
        try:
            worker = self._free.get(timeout=self._wait)
        except queue.Empty:
            raise PoolBusy(f"no compile worker was free for {self._wait:g} s") from None
        try:
            if self._closed:
                raise PoolClosed("the compile pool is closed")
            compiled: Compiled = worker.call(
                "guided_grammar.compiler:compile_spec", spec, self._limits, seconds=self._seconds
            )
            return compiled
        except WorkerTimeout:
            raise LimitExceeded("compile milliseconds", int(self._seconds * 1000), None) from None
        except WorkerDied:
            raise LimitExceeded("compile memory bytes", self._memory_bytes, None) from None
        finally:
            self._free.put(worker)

    def _remember(self, key: str, result: Compiled | GrammarError) -> None:
        self._known[key] = _Outcome(result, time.monotonic())
        self._known_bytes += _size(result)
        while len(self._known) > _KEPT or self._known_bytes > _KEPT_BYTES:
            self._forget(next(iter(self._known)))

    def _forget(self, key: str) -> None:
        self._known_bytes -= _size(self._known.pop(key).result)


def _size(result: Compiled | GrammarError) -> int:
    return len(result.text) if isinstance(result, Compiled) else len(result.reason)
