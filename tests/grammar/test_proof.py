"""Grammars proven in processes that can be killed."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest
from guided_grammar.errors import GrammarError, LimitExceeded, UnsatisfiableConstraint, UnsupportedConstraint
from guided_grammar.limits import DEFAULT_LIMITS
from guided_grammar.pool import PoolBusy
from guided_grammar.proof import Prover
from guided_grammar.vocabulary import Vocabulary
from guided_grammar.worker import Worker, WorkerDied
from guided_testing.family import children, kill

LETTERS = tuple(bytes([code]) for code in range(97, 123))
WORDS = tuple(a + b + c for a in LETTERS for b in LETTERS for c in LETTERS)
VOCABULARY = Vocabulary((*Vocabulary.of_bytes().tokens, *WORDS), (256,))
SLOW = "root ::= " + "r? " * 500 + "\nr ::= [a-z] [a-z]?"


@pytest.fixture(scope="module")
def prover() -> Iterator[Prover]:
    prover = Prover(VOCABULARY, DEFAULT_LIMITS, seconds=3.0, wait=60.0)
    yield prover
    prover.close()


def test_a_quick_grammar_is_proven_and_remembered(prover: Prover) -> None:
    prover.prove('root ::= "ab" [c-e]*', frozenset())
    started = time.monotonic()
    prover.prove('root ::= "ab" [c-e]*', frozenset())
    assert time.monotonic() - started < 0.01


def test_a_grammar_that_does_not_come_back_costs_its_worker_and_nothing_else(prover: Prover) -> None:
    before = prover.stats.kills.time
    with pytest.raises(LimitExceeded, match="grammar proof milliseconds limit is 3000"):
        prover.prove(SLOW, frozenset())
    assert prover.stats.kills.time == before + 1
    prover.prove("root ::= [0-9]+", frozenset())
    with pytest.raises(LimitExceeded):
        prover.prove(SLOW, frozenset())
    assert prover.stats.kills.time == before + 1, "a refusal is remembered"


def test_an_idle_worker_that_is_killed_from_outside_comes_back_with_its_vocabulary(prover: Prover) -> None:
    prover.prove('root ::= "before"', frozenset())
    for pid in children():
        kill(pid)
    prover.prove('root ::= "after"', frozenset())


@pytest.mark.parametrize(
    ("text", "error"),
    [('root ::= r\nr ::= r "a"', UnsatisfiableConstraint), ("root ::= missing", UnsupportedConstraint)],
)
def test_what_the_engine_would_refuse_is_refused(prover: Prover, text: str, error: type[GrammarError]) -> None:
    with pytest.raises(error):
        prover.prove(text, frozenset())


def test_a_worker_that_does_not_start_is_not_the_fault_of_the_grammar(
    prover: Prover, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("guided_grammar.proof._TIRED_SECONDS", 60.0)
    prover.prove('root ::= "early"', frozenset())
    before = prover.stats.kills.crash
    for pid in children():
        kill(pid)
    genuine, functions = Worker.call, list[str]()

    def call(worker: Worker, function: str, *arguments: object, **options: Any) -> object:
        functions.append(function)
        if function.endswith(":load"):
            raise WorkerDied("killed", -signal.SIGKILL)
        return genuine(worker, function, *arguments, **options)

    monkeypatch.setattr(Worker, "call", call)
    with pytest.raises(PoolBusy, match="the grammar worker does not start"):
        prover.prove('root ::= "late"', frozenset())
    monkeypatch.setattr(Worker, "call", genuine)
    prover.prove('root ::= "late"', frozenset())
    assert set(functions) == {"guided_grammar.proof:load"} and prover.stats.kills.crash == before


def test_a_grammar_over_the_memory_bound_is_refused() -> None:
    prover = Prover(VOCABULARY, DEFAULT_LIMITS, seconds=30.0, memory_bytes=900 << 20, wait=60.0)
    chain = "root ::= r0\n" + "".join(f"r{i} ::= r{i + 1}\n" for i in range(15_000)) + 'r15000 ::= "x"\n'
    try:
        with pytest.raises(LimitExceeded, match="grammar proof memory bytes limit is"):
            prover.prove(chain, frozenset())
    finally:
        prover.close()
