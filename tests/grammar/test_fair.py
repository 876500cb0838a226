"""Clients that wait are served in turns; who sends most loses first."""

from __future__ import annotations

import threading
from concurrent.futures import Future

import pytest
from guided_grammar.crew import Crew, PoolBusy, PoolClosed, result_of
from guided_grammar.fair import FairQueue


@pytest.mark.parametrize(
    ("arrivals", "order"),
    [
        (["a1", "a2", "a3"], ["a1", "a2", "a3"]),
        (["a1", "a2", "a3", "b1"], ["a1", "b1", "a2", "a3"]),
        (["a1", "a2", "b1", "b2", "c1"], ["a1", "b1", "c1", "a2", "b2"]),
    ],
)
def test_clients_take_turns(arrivals: list[str], order: list[str]) -> None:
    queue: FairQueue[str] = FairQueue(8)
    for item in arrivals:
        assert queue.put(item[0], item) is None
    assert [queue.take() for _ in arrivals] == order and len(queue) == 0


@pytest.mark.parametrize(
    ("arrivals", "dropped"),
    [(["a1", "a2", "b1"], "a2"), (["a1", "b1", "b2"], "b2"), (["a1", "a2", "a3"], "a3")],
)
def test_a_full_queue_drops_the_newest_of_the_client_that_has_most(arrivals: list[str], dropped: str) -> None:
    queue: FairQueue[str] = FairQueue(2)
    assert [queue.put(item[0], item) for item in arrivals] == [None, None, dropped]
    assert len(queue) == 2


def test_a_closed_queue_gives_back_what_waits_and_takes_nothing() -> None:
    queue: FairQueue[int] = FairQueue(4)
    queue.put("a", 1)
    assert queue.close() == [1]
    assert queue.take() is None and queue.put("a", 2) == 2


class Held:
    """A crew of one whose thread is busy until `go` is set."""

    def __init__(self, most: int) -> None:
        self.go, self.order, self.mended = threading.Event(), list[str](), list[str]()
        self.crew = Crew(["tool"], most, "held", self.mended.append)
        self.started = threading.Event()
        self.first = self.crew.submit("x", self._hold)
        assert self.started.wait(10)

    def _hold(self, tool: str) -> bool:
        self.started.set()
        return self.go.wait(10)

    def add(self, client: str, name: str) -> Future[None]:
        return self.crew.submit(client, lambda tool: self.order.append(name))


def test_one_client_with_many_jobs_does_not_make_another_wait_for_all_of_them() -> None:
    held = Held(8)
    futures = [held.add("many", f"many{i}") for i in range(3)] + [held.add("one", "one0")]
    assert held.crew.num_waiting == 4
    held.go.set()
    for future in futures:
        future.result(10)
    assert held.order == ["many0", "one0", "many1", "many2"]
    held.crew.close()
    held.crew.join(10)
    assert held.mended == ["tool"] * 5


def test_the_job_that_is_dropped_is_told_to_come_back() -> None:
    held = Held(1)
    kept, dropped = held.add("a", "kept"), held.add("a", "dropped")
    with pytest.raises(PoolBusy, match="too many constraints wait: limit is 1"):
        dropped.result(10)
    held.go.set()
    kept.result(10)
    held.crew.close()


def test_a_job_that_nobody_takes_up_in_time_is_given_up() -> None:
    held = Held(4)
    with pytest.raises(PoolBusy, match=r"no worker was free for 0\.05 s"):
        result_of(held.add("a", "late"), 0.05)
    held.go.set()
    held.crew.close()
    held.crew.join(10)
    assert held.order == []


def test_a_job_that_runs_is_waited_for() -> None:
    held = Held(4)
    threading.Timer(0.1, held.go.set).start()
    assert result_of(held.first, 0.01) is True
    held.crew.close()


def test_what_waits_when_the_crew_closes_is_told() -> None:
    held = Held(4)
    waiting = held.add("a", "never")
    held.crew.close()
    with pytest.raises(PoolClosed):
        waiting.result(10)
    with pytest.raises(PoolClosed):
        held.add("a", "later").result(10)
    held.go.set()
