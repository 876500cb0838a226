"""Results by key: computed once for all that ask together, kept within bounds."""

from __future__ import annotations

from concurrent.futures import Future

import pytest
from guided_grammar.errors import InvalidConstraint
from guided_grammar.outcomes import Outcomes, OutcomeStats


class Source:
    """Starts computations that end when told."""

    def __init__(self, entries: int = 8, bytes: int = 100) -> None:
        self.now, self.started = 0.0, list[str]()
        self.outcomes: Outcomes[str, str] = Outcomes(entries, bytes, len, lambda: self.now)

    def ask(self, key: str, result: str | BaseException | None = None) -> Future[str]:
        """Ask for `key`; a computation that starts ends with `result` at once, or is left running for None."""

        def start() -> Future[str]:
            self.started.append(key)
            future: Future[str] = Future()
            if isinstance(result, BaseException):
                future.set_exception(result)
            elif result is not None:
                future.set_result(result)
            return future

        return self.outcomes.ask(key, start)


def test_those_who_ask_together_share_one_computation() -> None:
    source = Source()
    assert source.ask("a") is source.ask("a") and source.started == ["a"]
    assert source.outcomes.stats == OutcomeStats(hits=1, misses=1)


def test_a_result_is_remembered() -> None:
    source = Source()
    source.ask("a", "xyz")
    assert source.ask("a").result() == "xyz" and source.started == ["a"]
    assert source.outcomes.stats == OutcomeStats(hits=1, misses=1, entries=1, bytes=3)


@pytest.mark.parametrize(("seconds", "starts"), [(59, 1), (61, 2)])
def test_a_refusal_is_remembered_for_a_minute(seconds: float, starts: int) -> None:
    source = Source()
    source.ask("a", InvalidConstraint("bad"))
    source.now = seconds
    source.ask("a", InvalidConstraint("bad"))
    assert len(source.started) == starts


@pytest.mark.parametrize("failure", [OSError("gone"), RuntimeError("fault")])
def test_any_other_failure_is_forgotten(failure: Exception) -> None:
    source = Source()
    source.ask("a", failure)
    assert source.ask("a", "now").result() == "now"


def test_a_computation_that_was_given_up_is_forgotten() -> None:
    source = Source()
    assert source.ask("a").cancel()
    assert source.ask("a", "now").result() == "now"


@pytest.mark.parametrize(("entries", "bytes"), [(2, 100), (8, 20)])
def test_the_least_recently_asked_leaves_first(entries: int, bytes: int) -> None:
    source = Source(entries, bytes)
    for key in ("a", "b", "a", "c"):
        source.ask(key, "0123456789")
    source.started.clear()
    for key in ("a", "c", "b"):
        source.ask(key, "0123456789")
    assert source.started == ["b"]
    assert source.outcomes.stats.evictions == 2
    assert (source.outcomes.stats.entries, source.outcomes.stats.bytes) == (2, 20)
