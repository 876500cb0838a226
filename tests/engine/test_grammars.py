"""Specs become matchers; unconstrained requests never come here."""

from __future__ import annotations

import pytest
from guided_grammar.errors import GrammarError
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


@pytest.mark.parametrize("text", ["", "{", '{"kind": "sorcery"}', "[]"])
def test_what_is_not_a_constraint_is_refused(text: str) -> None:
    with pytest.raises(GrammarError):
        byte_grammars().matchers(text, 1)
