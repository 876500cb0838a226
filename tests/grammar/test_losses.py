"""What a lost worker means: a limit, or a second try when it was killed by somebody else."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest
from guided_grammar.errors import GrammarError, LimitExceeded, UnsupportedConstraint
from guided_grammar.losses import Kills, Losses
from guided_grammar.worker import WorkerDied, WorkerTimeout

KILLED = WorkerDied("killed", -signal.SIGKILL)
FULL = WorkerDied("full", 1)


def script(*events: Exception | str) -> Callable[[], str]:
    """A call that does these things one after the other."""
    left = iter(events)

    def act() -> str:
        event = next(left)
        if isinstance(event, Exception):
            raise event
        return event

    return act


@pytest.mark.parametrize(
    ("events", "kills"), [(("done",), Kills()), ((KILLED, "done"), Kills(crash=1))], ids=["undisturbed", "killed once"]
)
def test_a_worker_that_was_killed_costs_a_second_try(events: tuple[Exception | str, ...], kills: Kills) -> None:
    losses = Losses()
    assert losses.bounded(script(*events), "compile", 5, 100) == "done"
    assert losses.kills == kills


@pytest.mark.parametrize(
    ("events", "error", "message", "kills"),
    [
        ((WorkerTimeout(),), LimitExceeded, "compile milliseconds limit is 5000, got more", Kills(time=1)),
        ((FULL,), LimitExceeded, "compile memory bytes limit is 100, got more", Kills(memory=1)),
        ((KILLED, FULL), LimitExceeded, "compile memory bytes", Kills(memory=1, crash=1)),
        ((KILLED, WorkerTimeout()), LimitExceeded, "compile milliseconds", Kills(time=1, crash=1)),
        ((KILLED, KILLED), UnsupportedConstraint, "compile crashed twice: killed", Kills(crash=2)),
    ],
)
def test_a_constraint_that_costs_its_worker_is_refused(
    events: tuple[Exception, ...], error: type[GrammarError], message: str, kills: Kills
) -> None:
    losses = Losses()
    with pytest.raises(error, match=message):
        losses.bounded(script(*events), "compile", 5, 100)
    assert losses.kills == kills and losses.kills.total == len(events)
