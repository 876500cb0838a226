"""Specs become matchers; unconstrained requests never come here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from guided_engine.grammars import GrammarMatcher, Grammars
from guided_engine.meter import Meter
from guided_engine.protocol import RequestError
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


def constrained(spec: GrammarSpec, mask_seconds: float = 0.0) -> tuple[Grammars, GrammarMatcher]:
    grammars = byte_grammars(mask_seconds)
    found = grammars.matchers(spec.to_json(), 1)
    assert found is not None
    return grammars, found.matchers[0]


def test_masks_are_counted_by_row_and_time() -> None:
    grammars, matcher = constrained(CHOICE)
    choice: Any = SimpleNamespace(matcher=matcher)
    free: Any = SimpleNamespace(matcher=None)
    assert grammars.fill([free]) is None and grammars.stats.num_masks == 0
    assert grammars.fill([choice, free]) is not None
    assert (grammars.stats.num_masks, grammars.stats.num_over_budget) == (1, 0)
    assert grammars.stats.fill_seconds == matcher.meter.spent > 0


def test_an_answer_whose_masks_take_too_long_is_ended_and_counted_and_no_other() -> None:
    grammars, slow = constrained(CHOICE, mask_seconds=0.5)
    found = grammars.matchers(CHOICE.to_json(), 1)
    assert found is not None
    quick = found.matchers[0]
    rows: list[Any] = [SimpleNamespace(matcher=slow), SimpleNamespace(matcher=quick)]
    slow.meter.spent = 0.6
    grammars.fill(rows)
    assert quick.accept(ord("y"))
    with pytest.raises(RequestError, match="mask milliseconds limit is 505, got 600") as caught:
        slow.accept(ord("y"))
    assert (caught.value.status, caught.value.param) == (400, "constraint")
    assert caught.value.detail["name"] == "mask milliseconds"
    assert grammars.stats.num_over_budget == 1


def test_nothing_fails_before_the_first_mask() -> None:
    """Forced beginnings are taken where an error would end the engine."""
    _, matcher = constrained(CHOICE, mask_seconds=0.5)
    matcher.meter.spent = 9.0
    assert matcher.accept(ord("y"))


@pytest.mark.parametrize(
    ("spent", "num_masks", "is_over"), [(0.4, 0, False), (0.9, 0, True), (0.9, 100, False), (1.1, 100, True)]
)
def test_a_choice_may_spend_more_the_longer_its_answer(spent: float, num_masks: int, is_over: bool) -> None:
    clock = iter([1.0, 1.0 + spent])
    meter = Meter(0.5, lambda: next(clock))
    with meter.running():
        meter.num_masks = num_masks
    assert meter.is_over is is_over
