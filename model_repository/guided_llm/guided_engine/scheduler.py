"""Who runs in the next step: admission, the cache's budget, and the chunks of a long prompt."""

from __future__ import annotations

import time

from guided_engine.batch import Batch
from guided_engine.kv_cache import KVCache, common_prefix
from guided_engine.metrics import CANCELLED
from guided_engine.protocol import RequestError
from guided_engine.request import Choice, Request
from guided_engine.waiting import WaitingLine

_WORTH_COPYING = 16
_SHORT = 32


class Scheduler:
    """Continuous batching: choices join and leave the running batch at any step. Used by one thread.

    Running choice i is in slot i; the last one moves into the slot of one that leaves. Choices of a request but the
    first wait until the first has read the prompt, and copy its keys and values.
    """

    def __init__(self, cache: KVCache, step_tokens: int, queue_seconds: float, prefix_cache: bool = True) -> None:
        self._cache, self._step_tokens, self._queue_seconds = cache, step_tokens, queue_seconds
        self._prefix_cache = prefix_cache
        self._waiting = WaitingLine()
        self._running: list[Choice] = []
        self._finished: list[Choice] = []
        self._dropped: list[tuple[Request, RequestError]] = []
        self.num_preempted = self.num_cancelled = 0

    @property
    def num_running(self) -> int:
        return len(self._running)

    @property
    def num_waiting(self) -> int:
        return len(self._waiting)

    @property
    def num_tokens(self) -> int:
        """Tokens of the running rows: what the cache holds and is about to hold."""
        return sum(len(c.tokens) for c in self._running)

    @property
    def requests(self) -> list[Request]:
        """Every request with a choice that waits, runs, or has an end to report."""
        return list(dict.fromkeys(c.request for c in (*self._finished, *self._running, *self._waiting)))

    def add(self, request: Request) -> None:
        self._waiting.add(request.choices)

    def next_batch(self) -> Batch | None:
        """The step to compute, or None when nothing runs."""
        self._drop()
        self._make_room()
        self._admit()
        if not self._running:
            return None
        lengths = self._lengths()
        chunks = tuple(c.tokens[c.num_cached : c.num_cached + n] for c, n in zip(self._running, lengths, strict=True))
        sampling = tuple(i for i, c in enumerate(self._running) if c.num_pending == lengths[i])
        return Batch(tuple(self._running), tuple(c.num_cached for c in self._running), chunks, sampling)

    def take_finished(self) -> list[Choice]:
        """Choices that the grammar forced to their end, so that they never ran."""
        finished, self._finished = self._finished, []
        return finished

    def take_dropped(self) -> list[tuple[Request, RequestError]]:
        """Requests taken out because their client left or they waited too long, and what to tell them."""
        dropped, self._dropped = self._dropped, []
        return dropped

    def remove(self, request: Request) -> None:
        """Take every choice of a request out, wherever it is."""
        self._waiting.remove(request)
        self._finished = [c for c in self._finished if c.request is not request]
        for choice in [c for c in self._running if c.request is request]:
            self.leave(choice)

    def leave(self, choice: Choice) -> None:
        """A running choice frees its slot."""
        slot, last = self._running.index(choice), self._running.pop()
        if last is not choice:
            self._cache.copy(len(self._running), slot, last.num_cached)
            self._running[slot] = last
        self._cache.hold(len(self._running), last.tokens[: last.num_cached])

    def _drop(self) -> None:
        """Take out what was cancelled or waited too long."""
        now = time.monotonic()
        for request in self.requests:
            asked = request.sampling.queue_seconds
            limit = self._queue_seconds if asked is None else min(asked, self._queue_seconds)
            if request.sink.cancelled:
                self.num_cancelled += 1
                self.remove(request)
                self._dropped.append((request, RequestError("cancelled by the client", CANCELLED)))
            elif not request.timings.start and now - request.timings.arrival > limit:
                self.remove(request)
                self._dropped.append((request, RequestError(f"waited longer than {limit:g} s in the queue", 504)))

    def _make_room(self) -> None:
        """Past the budget the least urgent, youngest rows go back to the queue, with tokens and matcher."""
        while len(self._running) > 1 and self.num_tokens > self._cache.shape.tokens:
            last = max(self._running, key=lambda c: (c.request.sampling.priority, c.request.timings.start, c.index))
            self.leave(last)
            last.restart()
            self._waiting.add([last])
            self.num_preempted += 1

    def _admit(self) -> None:
        """One that does not fit holds back those behind it, or small requests would starve a large one."""
        while len(self._running) < self._cache.shape.rows:
            choice = self._waiting.first(self._running)
            if choice is None:
                return
            if self._running and self.num_tokens + len(choice.tokens) + 1 > self._cache.shape.tokens:
                return
            self._waiting.take(choice)
            self._start(choice)

    def _start(self, choice: Choice) -> None:
        if not choice.request.timings.start:
            choice.request.timings.start = time.monotonic()
        choice.open()
        if choice.is_finished:
            self._finished.append(choice)
            return
        slot = len(self._running)
        if self._prefix_cache:
            source, length = self._longest_match(choice)
            if length >= _WORTH_COPYING:
                self._cache.copy(source, slot, length)
                choice.reuse(length)
        self._cache.take(slot)
        self._running.append(choice)

    def _longest_match(self, choice: Choice) -> tuple[int, int]:
        """The slot that holds the longest beginning of the choice's tokens; the last token is always computed."""
        known = [(slot, c.tokens[: c.num_cached]) for slot, c in enumerate(self._running)] + self._cache.held()
        wanted = choice.tokens[:-1]
        return max(((slot, common_prefix(t, wanted)) for slot, t in known), key=lambda m: m[1], default=(0, 0))

    def _lengths(self) -> list[int]:
        """Tokens each row adds: one at least, then what is short (answers), then prompts, oldest first."""
        lengths = [1] * len(self._running)
        left = self._step_tokens - len(lengths)
        order = sorted(range(len(lengths)), key=lambda i: self._running[i].request.timings.start)
        for i in [i for i in order if self._running[i].num_pending <= _SHORT] + order:
            more = max(0, min(self._running[i].num_pending - lengths[i], left))
            lengths[i] += more
            left -= more
        return lengths
