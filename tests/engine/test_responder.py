"""Every request gets one FINAL, from one thread, with what was pending in as few responses as possible."""

from __future__ import annotations

import threading
import time

from guided_engine.protocol import Event, RequestError, TokenLogprob
from guided_engine.responder import Outbox, Responder, merge


class Wire:
    """A `Reply` that records what is sent, from which thread, and can break or hang up."""

    def __init__(self) -> None:
        self.sent: list[tuple[list[Event], bool]] = []
        self.error: RequestError | None = None
        self.threads: set[int] = set()
        self.hung_up = self.broken = False
        self.final = threading.Event()

    def send(self, events: list[Event], final: bool) -> None:
        self.threads.add(threading.get_ident())
        if self.broken:
            raise OSError("gone")
        self.sent.append((events, final))
        if final:
            assert not self.final.is_set()
            self.final.set()

    def fail(self, error: RequestError) -> None:
        assert not self.final.is_set()
        self.error = error
        self.final.set()

    def is_cancelled(self) -> bool:
        return self.hung_up


def pending(stream: bool) -> tuple[Wire, Responder, list[Responder]]:
    wire, posted = Wire(), list[Responder]()
    return wire, Responder(wire, posted.append, stream), posted


def test_pending_events_of_a_stream_go_out_as_one_response() -> None:
    wire, responder, posted = pending(stream=True)
    for text in "abc":
        responder.send(Event(0, (1,), text))
    assert posted == [responder]
    responder.flush()
    assert wire.sent == [([Event(0, (1, 1, 1), "abc")], False)]


def test_without_stream_there_is_exactly_one_response() -> None:
    wire, responder, posted = pending(stream=False)
    responder.send(Event(0, (1,), "a"))
    assert posted == []
    responder.send(Event(0, (2,), "b", finish_reason="stop"))
    responder.close()
    responder.flush()
    assert wire.sent == [([Event(0, (1, 2), "ab", finish_reason="stop")], True)]


def test_nothing_follows_final() -> None:
    wire, responder, _ = pending(stream=True)
    responder.close()
    responder.close(RequestError("late"))
    responder.send(Event(0, text="late"))
    responder.flush()
    responder.flush()
    assert wire.sent == [([], True)] and wire.error is None and responder.is_done


def test_an_error_is_the_final_response() -> None:
    wire, responder, _ = pending(stream=True)
    responder.send(Event(0, text="a"))
    responder.close(RequestError("no", 500))
    responder.flush()
    assert wire.sent == [] and wire.error is not None and wire.error.status == 500


def test_events_of_a_client_that_left_are_dropped_and_its_final_still_sent() -> None:
    wire, responder, _ = pending(stream=True)
    wire.hung_up = True
    responder.poll()
    responder.send(Event(0, text="a"))
    responder.flush()
    assert wire.sent == [] and responder.cancelled
    responder.close(RequestError("cancelled", 499))
    responder.flush()
    assert wire.error is not None


def test_merge_keeps_choices_apart_and_log_probs_in_order() -> None:
    one, two = TokenLogprob(1, -1.0, (97,)), TokenLogprob(2, -2.0, (98,))
    events = [Event(1, (1,), "x", (one,)), Event(0, (5,), "y"), Event(1, (2,), "z", (two,), "stop", {"steps": 2})]
    assert merge(events) == [Event(1, (1, 2), "xz", (one, two), "stop", {"steps": 2}), Event(0, (5,), "y")]


def test_an_outbox_sends_everything_of_its_requests_from_one_thread() -> None:
    outbox, wires = Outbox(lambda _: None), [Wire() for _ in range(20)]
    responders = [outbox.open(w, stream=True) for w in wires]
    for text in "abcd":
        for r in responders:
            r.send(Event(0, text=text))
    for r in responders:
        r.close()
    assert all(w.final.wait(5) for w in wires)
    outbox.stop(5)
    assert outbox.num_open == 0
    assert len({t for w in wires for t in w.threads}) == 1
    assert {"".join(e.text for events, _ in w.sent for e in events) for w in wires} == {"abcd"}


def test_an_outbox_notices_a_client_that_leaves_while_nothing_is_sent() -> None:
    outbox, wire = Outbox(lambda _: None), Wire()
    responder = outbox.open(wire, stream=False)
    wire.hung_up = True
    deadline = time.monotonic() + 5
    while not responder.cancelled and time.monotonic() < deadline:
        time.sleep(0.01)
    responder.close(RequestError("cancelled", 499))
    outbox.stop(5)
    assert responder.cancelled and wire.final.is_set()


def test_an_outbox_that_is_always_busy_still_notices_who_left() -> None:
    outbox, busy, quiet = Outbox(lambda _: None), Wire(), Wire()
    talker, listener = outbox.open(busy, stream=True), outbox.open(quiet, stream=False)
    quiet.hung_up = True
    deadline = time.monotonic() + 5
    while not listener.cancelled and time.monotonic() < deadline:
        talker.send(Event(0, text="a"))
        time.sleep(0.001)
    outbox.stop(5)
    assert listener.cancelled


def test_a_transport_that_fails_is_reported_and_leaves_the_other_requests_alone() -> None:
    reports: list[str] = []
    outbox, broken, good = Outbox(reports.append), Wire(), Wire()
    broken.broken = True
    for wire in (broken, good):
        responder = outbox.open(wire, stream=True)
        responder.send(Event(0, text="a"))
        responder.close()
    assert good.final.wait(5)
    outbox.stop(5)
    assert reports == ["sending failed: OSError: gone"] and outbox.num_open == 0
