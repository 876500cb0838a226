"""Events back to the client: one sending thread per request, pending events in one response, exactly one FINAL."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from guided_engine.protocol import Event, RequestError

_POLL_SECONDS = 0.05


class Reply(Protocol):
    """The transport's end of one request; used by one thread only."""

    def send(self, events: list[Event], final: bool) -> None: ...

    def fail(self, error: RequestError) -> None:
        """Send the error as the last response."""

    def is_cancelled(self) -> bool: ...


class Responder:
    """Collects what the engine says about one request until the sending thread comes by.

    stream False: everything is sent in one response at the end. `send` and `close` may be called by any one thread at
    a time; `close` ends it, and later calls are ignored.
    """

    def __init__(self, reply: Reply, post: Callable[[Responder], None], stream: bool) -> None:
        self._post, self._stream = post, stream
        # dropped with FINAL: a sender that is still referenced keeps Triton from unloading the model
        self._reply: Reply | None = reply
        self._lock = threading.Lock()
        self._events: list[Event] = []
        self._error: RequestError | None = None
        self._closed = self._posted = False
        self.cancelled = False

    @property
    def is_done(self) -> bool:
        """FINAL was sent."""
        return self._reply is None

    def send(self, event: Event) -> None:
        with self._lock:
            if self._closed:
                return
            self._events.append(event)
            post = self._stream and not self._posted
            self._posted |= post
        if post:
            self._post(self)

    def close(self, error: RequestError | None = None) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed, self._error = True, error
            post, self._posted = not self._posted, True
        if post:
            self._post(self)

    def flush(self) -> None:
        """Sending thread: send what is pending."""
        with self._lock:
            events, self._events = self._events, []
            self._posted, closed, error = False, self._closed, self._error
        reply = self._reply
        if reply is None:
            return
        if closed:
            self._reply = None
        if error is not None:
            reply.fail(error)
        elif closed or (events and not self.cancelled):
            reply.send(merge(events), closed)
        self.poll()

    def poll(self) -> None:
        """Sending thread: look whether the client is still there."""
        if self._reply is not None and not self.cancelled:
            self.cancelled = self._reply.is_cancelled()


def merge(events: list[Event]) -> list[Event]:
    """Consecutive events of one choice as one; choices in the order of their first event."""
    merged: dict[int, Event] = {}
    for event in events:
        old = merged.get(event.index)
        merged[event.index] = event if old is None else _joined(old, event)
    return list(merged.values())


def _joined(old: Event, new: Event) -> Event:
    logprobs = None if old.logprobs is None and new.logprobs is None else (*(old.logprobs or ()), *(new.logprobs or ()))
    return replace(new, token_ids=old.token_ids + new.token_ids, text=old.text + new.text, logprobs=logprobs)


class Outbox:
    """A thread that sends for the responders opened on it, and asks the quiet ones whether their client left."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._ready: queue.SimpleQueue[Responder | None] = queue.SimpleQueue()
        self._open: set[Responder] = set()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="guided-outbox", daemon=True)
        self._thread.start()

    @property
    def num_open(self) -> int:
        """Requests whose FINAL is still to come."""
        return len(self._open)

    def open(self, reply: Reply, stream: bool) -> Responder:
        responder = Responder(reply, self._ready.put, stream)
        with self._lock:
            self._open.add(responder)
        return responder

    def stop(self, timeout: float) -> None:
        """Send what is pending, then end the thread."""
        self._ready.put(None)
        self._thread.join(timeout)

    def _run(self) -> None:
        polled = 0.0
        while True:
            # by the clock: while some stream always has something to send, the quiet requests' clients may leave too
            if time.monotonic() - polled >= _POLL_SECONDS:
                with self._lock:
                    quiet = list(self._open)
                self._each(quiet, Responder.poll)
                polled = time.monotonic()
            try:
                responder = self._ready.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                continue
            if responder is None:
                return
            self._each([responder], Responder.flush)
            if responder.is_done:
                with self._lock:
                    self._open.discard(responder)

    def _each(self, responders: list[Responder], act: Callable[[Responder], None]) -> None:
        for responder in responders:
            try:
                act(responder)
            except Exception as error:
                # this thread serves every other request too; a transport that fails is a client that left
                responder.cancelled = True
                self._report(f"sending failed: {type(error).__name__}: {error}")
