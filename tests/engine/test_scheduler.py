"""Who runs: admission, chunks, the cache's budget, preemption, prefixes, cancels and deadlines."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from guided_testing.engine_fakes import Bench, Listener

LIST = 'root ::= "[" [0-9]{1,3} (", " [0-9]{1,3}){0,3} "]"'


def echo(prompt: str) -> str:
    return prompt[::-1]


def test_rows_join_and_leave_at_any_step() -> None:
    rng = random.Random(5)
    bench = Bench(echo, rows=3)
    heard = {}
    for i in range(20):
        prompt = "".join(rng.choices("abcdefgh", k=rng.randint(1, 20))) + str(i)
        heard[prompt] = bench.add(prompt)
        for _ in range(rng.randint(0, 6)):
            bench.engine.step_and_deliver()
    bench.drain()
    assert {p: h.text() for p, h in heard.items()} == {p: p[::-1] for p in heard}


def test_a_long_prompt_is_read_in_chunks_while_others_go_on() -> None:
    bench = Bench(echo, step_tokens=8)
    short = bench.add("ab")
    bench.engine.step_and_deliver()
    bench.add("x" * 40)
    bench.drain()
    chunks = [[len(c) for c in b.chunks] for b in bench.model.batches]
    assert all(sum(c) <= 8 for c in chunks) and [c for c in chunks if len(c) == 2] == [[1, 7]] * 2
    assert short.last().usage["steps"] == 3


def test_choices_wait_for_the_first_to_read_the_prompt_and_copy_it() -> None:
    bench = Bench(echo, step_tokens=16, rows=4)
    heard = bench.add("0123456789" * 4, n=3)
    bench.drain()
    assert [heard.text(i) for i in range(3)] == ["9876543210" * 2 + "9876"] * 3
    assert heard.last().usage["cached_tokens"] == 0
    assert sum(b.num_tokens for b in bench.model.batches[:5]) < 40 + 3 * 10


@pytest.mark.parametrize(("prefix_cache", "cached"), [(True, 20), (False, 0)])
def test_d178_a_shared_beginning_is_copied(prefix_cache: bool, cached: int) -> None:
    bench = Bench(echo, prefix_cache=prefix_cache)
    system = "a system prompt of 20"[:20]
    bench.add(system + "one")
    bench.drain()
    heard = bench.add(system + "two")
    bench.drain()
    assert heard.last().usage["cached_tokens"] == cached and heard.text() == (system + "two")[::-1]


@pytest.mark.parametrize("prefix_cache", [True, False])
def test_d106_preempted_rows_resume_with_their_grammar_state(prefix_cache: bool) -> None:
    bench = Bench(lambda _: "[123, 456, 789]", rows=8, tokens=60, prefix_cache=prefix_cache)
    heard = [bench.add(f"prompt {i}", LIST, jump_forward=False) for i in range(16)]
    bench.drain(2000)
    assert [h.text() for h in heard] == ["[123, 456, 789]"] * 16
    assert all(h.last().finish_reason == "stop" and h.num_closed == 1 for h in heard)
    assert bench.scheduler.num_preempted > 0


def test_the_budget_holds_at_every_step_but_for_a_lone_row() -> None:
    bench = Bench(lambda _: "y" * 20, rows=8, tokens=64)
    for i in range(12):
        bench.add(f"prompt {i}", max_tokens=20)
    while bench.scheduler.requests:
        bench.engine.step_and_deliver()
        batch = bench.model.batches[-1]
        assert len(batch.rows) == 1 or sum(batch.past) + batch.num_tokens <= 64


def test_a_cancelled_request_frees_its_row_before_the_next_step() -> None:
    bench = Bench(lambda _: "z" * 30, rows=1)
    gone, next_one = bench.add("a"), bench.add("b", max_tokens=2)
    for _ in range(3):
        bench.engine.step_and_deliver()
    num_events = len(gone.events)
    gone.cancelled = True
    bench.engine.step_and_deliver()
    assert gone.num_closed == 1 and gone.error is not None and gone.error.status == 499
    assert len(gone.events) == num_events and len(next_one.events) == 1
    assert bench.numbers.values["guided_cancelled_requests_total"] == 1


def test_a_request_that_waits_too_long_is_told() -> None:
    bench = Bench(lambda _: "z" * 30, rows=1, queue_seconds=0.0)
    running = bench.add("a", max_tokens=3)
    bench.scheduler.requests[0].timings.arrival += 1000
    late = bench.add("b")
    bench.drain()
    assert late.error is not None and late.error.status == 504 and late.num_closed == 1
    assert running.text() == "zzz"


def order_of_ends(bench: Bench, heard: dict[str, Listener]) -> list[str]:
    """Names in the order in which their requests ended."""
    ended: list[str] = []
    while bench.scheduler.requests:
        bench.engine.step_and_deliver()
        ended += [name for name, listener in heard.items() if listener.num_closed and name not in ended]
    return ended


@pytest.mark.parametrize(
    ("asked", "ends"),
    [
        ([("a", {}), ("b", {}), ("c", {})], "abc"),
        ([("a", {"priority": 1}), ("b", {}), ("c", {"priority": -1})], "cba"),
        ([("a", {"priority": 1, "client": "x"}), ("b", {"priority": 1, "client": "y"}), ("c", {"client": "x"})], "cba"),
        ([("a", {"client": "x"}), ("b", {"client": "x"}), ("c", {"client": "x"}), ("d", {"client": "y"})], "adbc"),
        ([("a", {"client": "x"}), ("b", {"client": "y"}), ("c", {"client": "y"}), ("d", {"client": "x"})], "abdc"),
    ],
)
def test_the_next_row_goes_by_priority_then_by_client_then_by_arrival(
    asked: list[tuple[str, dict[str, Any]]], ends: str
) -> None:
    bench = Bench(lambda _: "zz", rows=1)
    heard = {name: bench.add(name, **how) for name, how in asked}
    assert "".join(order_of_ends(bench, heard)) == ends


def test_a_client_with_many_requests_leaves_rows_to_another() -> None:
    bench = Bench(lambda _: "zz", rows=4)
    for i in range(40):
        bench.add(f"many {i}", client="many")
    bench.engine.step_and_deliver()
    few = [bench.add(f"few {i}", client="few") for i in range(2)]
    steps = 0
    while not all(h.num_closed for h in few):
        bench.engine.step_and_deliver()
        steps += 1
    assert steps <= 3 + 3


def test_under_pressure_the_least_urgent_row_goes_back_first() -> None:
    bench = Bench(lambda _: "y" * 20, rows=3, tokens=40)
    background = bench.add("background", max_tokens=20, priority=5)
    urgent = [bench.add(f"urgent {i}", max_tokens=20) for i in range(2)]
    ended = order_of_ends(bench, {"background": background, "first": urgent[0], "second": urgent[1]})
    assert ended[-1] == "background" and bench.scheduler.num_preempted > 0
    assert [h.text() for h in (background, *urgent)] == ["y" * 20] * 3


@pytest.mark.parametrize(("own", "told"), [(0.5, "0.5 s"), (1000.0, "60 s")])
def test_a_request_may_wait_as_long_as_it_says_and_the_engine_allows(own: float, told: str) -> None:
    bench = Bench(lambda _: "zz", rows=1)
    bench.add("a")
    late = bench.add("b", queue_seconds=own)
    bench.scheduler.requests[1].timings.arrival -= 61
    bench.drain()
    assert late.error is not None and late.error.status == 504 and told in late.error.message


def test_a_large_request_is_not_overtaken_for_ever_by_small_ones() -> None:
    bench = Bench(lambda _: "zz", rows=4, tokens=48)
    heard = {f"small {i}": bench.add(f"small {i}") for i in range(3)}
    heard["large"] = bench.add("x" * 40, max_tokens=2)
    heard |= {f"later {i}": bench.add(f"later {i}") for i in range(3)}
    assert order_of_ends(bench, heard)[3] == "large"


@pytest.mark.parametrize("rows", [4, 16])
def test_d106_64_constrained_requests_on_a_tiny_budget_are_all_valid_and_complete(rows: int) -> None:
    bench = Bench(lambda p: f"[{len(p)}, 4{p[-1]}, 7]", rows=rows, tokens=64)
    heard = [bench.add(f"prompt {i}", LIST, temperature=1.0, seed=i, client=str(i % 3)) for i in range(64)]
    bench.drain(5000)
    assert all(re.fullmatch(r"\[\d{1,3}(, \d{1,3}){0,3}\]", h.text()) for h in heard)
    assert {(h.last().finish_reason, h.num_closed, h.error) for h in heard} == {("stop", 1, None)}
    assert bench.scheduler.num_preempted > 0
