"""Counters of the grammars reach Triton as increments, gauges as they stand, and only when they have changed."""

from __future__ import annotations

from dataclasses import replace

from guided_engine.grammars import GrammarStats
from guided_engine.metrics import COUNTERS, GAUGES, Metrics, gauges_of, totals_of
from guided_grammar.losses import Kills
from guided_grammar.session import CacheStats
from guided_testing.engine_fakes import Numbers

STATS = GrammarStats(
    CacheStats(hits=5, misses=2, evictions=1, entries=1, bytes=900, compile_seconds=0.5),
    kills=Kills(time=3, memory=2, crash=1),
    num_waiting=4,
    text_seconds=1.5,
    proof_seconds=2.5,
    fill_seconds=0.25,
    num_masks=70,
    num_over_budget=1,
)


class Counting(Numbers):
    """How often anything was handed over."""

    num_calls = 0

    def set(self, name: str, value: float) -> None:
        self.num_calls += 1
        super().set(name, value)

    def add(self, name: str, value: float) -> None:
        self.num_calls += 1
        super().add(name, value)


def test_every_counter_of_the_grammars_is_a_metric_with_a_description() -> None:
    assert gauges_of(STATS).keys() <= GAUGES.keys() and totals_of(STATS).keys() <= COUNTERS.keys()


def test_d132_a_refusal_hands_over_what_it_cost() -> None:
    numbers = Counting()
    metrics = Metrics(numbers, lambda: STATS)
    metrics.refused()
    assert {name: numbers.values[name] for name in totals_of(STATS)} == totals_of(STATS)
    assert {name: numbers.values[name] for name in gauges_of(STATS)} == gauges_of(STATS)
    assert numbers.values["guided_grammar_kills_time_total"] == 3
    assert numbers.values["guided_grammar_waiting"] == 4


def test_only_what_has_changed_is_handed_over_again() -> None:
    numbers, now = Counting(), [STATS]
    metrics = Metrics(numbers, lambda: now[0])
    metrics.refused()
    numbers.num_calls = 0
    now[0] = replace(STATS, kills=Kills(time=4, memory=2, crash=1))
    metrics.refused()
    assert numbers.num_calls == 2, "the refusal and the kill"
    assert numbers.values["guided_grammar_kills_time_total"] == 4
