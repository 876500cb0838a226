"""Specs become matchers once, whoever asks; unconstrained requests never come here."""

from __future__ import annotations

import threading
import time

import pytest
from guided_engine import grammars as module
from guided_engine.grammars import Grammars
from guided_grammar.compiler import Compiled, compile_spec
from guided_grammar.errors import GrammarError, InvalidConstraint
from guided_grammar.limits import Limits
from guided_grammar.spec import FREE, GrammarSpec, Kind
from guided_testing.byte_tokenizer import EOS
from guided_testing.engine_fakes import byte_grammars

CHOICE = GrammarSpec(Kind.CHOICE, ["yes", "no"])


def test_f82_a_free_spec_constrains_nothing_and_is_not_counted() -> None:
    grammars = byte_grammars()
    assert grammars.matchers(FREE.to_json(), 1) is None and grammars.num_asked == 0


def test_each_choice_gets_its_own_position() -> None:
    constrained = byte_grammars().matchers(CHOICE.to_json(), 2)
    assert constrained is not None
    first, second = constrained.matchers
    assert first.accept(ord("y")) and second.accept(ord("n")) and not first.accept(ord("o"))


@pytest.mark.parametrize(
    ("text", "complete", "closed"), [("", False, False), ("ye", False, False), ("yes", True, True)]
)
def test_a_document_is_closed_when_only_a_stop_may_follow(text: str, complete: bool, closed: bool) -> None:
    constrained = byte_grammars().matchers(CHOICE.to_json(), 1)
    assert constrained is not None
    matcher = constrained.matchers[0]
    assert all(matcher.accept(b) for b in text.encode())
    assert (matcher.is_complete, matcher.is_closed) == (complete, closed)
    assert matcher.accept(EOS) is complete


def test_a_document_that_may_go_on_is_complete_but_not_closed() -> None:
    constrained = byte_grammars().matchers(GrammarSpec(Kind.CHOICE, ["a", "ab"]).to_json(), 1)
    assert constrained is not None
    matcher = constrained.matchers[0]
    assert matcher.accept(ord("a")) and matcher.is_complete and not matcher.is_closed


def test_one_compile_serves_everyone_who_asks_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[GrammarSpec] = []

    def slow(spec: GrammarSpec, limits: Limits) -> Compiled:
        calls.append(spec)
        time.sleep(0.2)
        return compile_spec(spec, limits)

    monkeypatch.setattr(module, "compile_spec", slow)
    grammars = byte_grammars()
    threads = [threading.Thread(target=grammars.matchers, args=(CHOICE.to_json(), 1)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert calls == [CHOICE] and grammars.num_asked == 4


def test_a_refusal_is_remembered_and_a_fault_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    errors: list[Exception] = [MemoryError("full"), InvalidConstraint("no"), InvalidConstraint("twice")]

    def failing(spec: GrammarSpec, limits: Limits) -> Compiled:
        raise errors.pop(0)

    monkeypatch.setattr(module, "compile_spec", failing)
    grammars: Grammars = byte_grammars()
    with pytest.raises(MemoryError):
        grammars.matchers(CHOICE.to_json(), 1)
    for _ in range(2):
        with pytest.raises(InvalidConstraint, match="no"):
            grammars.matchers(CHOICE.to_json(), 1)
    assert len(errors) == 1


@pytest.mark.parametrize("text", ["", "{", '{"kind": "sorcery"}', "[]"])
def test_what_is_not_a_constraint_is_refused(text: str) -> None:
    with pytest.raises(GrammarError):
        byte_grammars().matchers(text, 1)
