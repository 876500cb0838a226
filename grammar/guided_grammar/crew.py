"""Threads that each own a tool and do the jobs of a fair queue with it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from typing import Any, Generic, TypeVar

from guided_grammar.fair import FairQueue

W = TypeVar("W")
R = TypeVar("R")


class PoolBusy(Exception):
    """No worker became free in time, or too many wait: the caller may try again."""


class PoolClosed(Exception):
    """The pool was closed while or before the call."""


class _Job(Generic[W]):
    def __init__(self, run: Callable[[W], Any]) -> None:
        self.run, self.future = run, Future[Any]()


class Crew(Generic[W]):
    """Thread-safe. One thread per tool; a tool is used by its thread only.

    most: jobs that may wait. mend: called on a tool after each job, before its next one; must not raise.
    """

    def __init__(self, tools: Sequence[W], most: int, name: str, mend: Callable[[W], None] | None = None) -> None:
        self._queue: FairQueue[_Job[W]] = FairQueue(most)
        self._mend, self._most, self._closed = mend, most, False
        self._threads = [threading.Thread(target=self._work, args=(t,), name=name, daemon=True) for t in tools]
        for thread in self._threads:
            thread.start()

    @property
    def num_waiting(self) -> int:
        return len(self._queue)

    def submit(self, client: str, run: Callable[[W], R]) -> Future[R]:
        """The future of `run(tool)`; it ends with PoolBusy when the queue is full, PoolClosed after `close`."""
        job = _Job(run)
        dropped = self._queue.put(client, job)
        if dropped is not None and dropped.future.set_running_or_notify_cancel():
            dropped.future.set_exception(self._refusal())
        return job.future

    def close(self) -> None:
        """End what waits with PoolClosed. What runs goes on until its tool fails; see `join`."""
        self._closed = True
        for job in self._queue.close():
            if job.future.set_running_or_notify_cancel():
                job.future.set_exception(self._refusal())

    def join(self, timeout: float) -> None:
        """Wait for the threads to end, each at most `timeout` seconds."""
        for thread in self._threads:
            thread.join(timeout)

    def _refusal(self) -> Exception:
        if self._closed:
            return PoolClosed("the compile pool is closed")
        return PoolBusy(f"too many constraints wait: limit is {self._most}")

    def _work(self, tool: W) -> None:
        while True:
            job = self._queue.take()
            if job is None:
                return
            if not job.future.set_running_or_notify_cancel():
                continue
            try:
                result = job.run(tool)
            except BaseException as error:
                job.future.set_exception(error)
            else:
                job.future.set_result(result)
            if self._mend is not None:
                self._mend(tool)


def result_of(future: Future[R], wait: float) -> R:
    """Its result or exception. Raises PoolBusy when no worker took it up within `wait` seconds."""
    try:
        return future.result(wait)
    except TimeoutError:
        if not future.cancel():
            return future.result()
    except CancelledError:
        pass
    raise PoolBusy(f"no worker was free for {wait:g} s")
