"""The loop over a scripted model and a byte vocabulary: what each request hears, and when it ends."""

from __future__ import annotations

import pytest
import torch
from guided_engine.engine import Engine
from guided_engine.protocol import RequestError
from guided_testing.engine_fakes import Bench

YES_NO = 'root ::= "yes" | "no"'
OBJECT = 'root ::= "{\\"name\\": \\"" [a-z]{1,5} "\\", \\"age\\": " [0-9]{1,2} "}"'


def echo(prompt: str) -> str:
    return prompt.upper()


@pytest.mark.parametrize(
    ("sampling", "text", "reason"),
    [
        ({}, "HELLO THERE", "stop"),
        ({"max_tokens": 5}, "HELLO", "length"),
        ({"stop": ("O T",)}, "HELL", "stop"),
        ({"stop_token_ids": (ord("O"),)}, "HELL", "stop"),
        ({"logit_bias": {ord("H"): -100.0, ord("z"): 50.0}, "max_tokens": 1}, "z", "length"),
    ],
)
def test_a_free_answer_ends_where_it_should(sampling: dict[str, object], text: str, reason: str) -> None:
    bench = Bench(echo)
    heard = bench.add("hello there", **sampling)
    bench.drain()
    assert (heard.text(), heard.last().finish_reason, heard.num_closed) == (text, reason, 1)


def test_usage_counts_prompt_answer_and_steps() -> None:
    bench = Bench(echo)
    heard = bench.add("abc")
    bench.drain()
    usage = {"prompt_tokens": 3, "completion_tokens": 3, "cached_tokens": 0, "forced_tokens": 0, "steps": 4}
    assert heard.last().usage == usage


def test_p30_a_choice_is_one_of_the_listed_strings_whatever_the_model_wants() -> None:
    bench = Bench(lambda _: "maybe")
    heard = bench.add("?", YES_NO)
    bench.drain()
    assert heard.text() in ("yes", "no") and heard.last().finish_reason == "stop"


def test_p7_every_choice_carries_the_constraint() -> None:
    bench = Bench(lambda _: "yellow")
    heard = bench.add("?", YES_NO, n=4, temperature=1.0, seed=7)
    bench.drain()
    assert {heard.text(i) for i in range(4)} <= {"yes", "no"} and heard.num_closed == 1


def test_f60_an_answer_ends_with_its_document_without_waiting_for_a_stop() -> None:
    bench = Bench(lambda _: '{"name": "bel", "age": 42}')
    heard = bench.add("?", OBJECT, jump_forward=False)
    bench.drain()
    assert heard.text() == '{"name": "bel", "age": 42}'
    assert heard.last().usage["steps"] == len(heard.text())


def test_a_document_that_ends_on_the_last_token_allowed_is_not_cut() -> None:
    answer = '{"name": "bel", "age": 42}'
    bench = Bench(lambda _: answer)
    heard = bench.add("?", OBJECT, max_tokens=len(answer))
    bench.drain()
    assert (heard.text(), heard.last().finish_reason) == (answer, "stop")


def test_f16_a_document_out_of_tokens_is_cut_and_says_length() -> None:
    bench = Bench(lambda _: '{"name": "bel", "age": 42}')
    heard = bench.add("?", OBJECT, max_tokens=6)
    bench.drain()
    assert (heard.text(), heard.last().finish_reason) == ('{"name', "length")


def test_forced_text_costs_no_step_and_changes_nothing() -> None:
    bench = Bench(lambda _: '{"name": "bel", "age": 42}')
    plain, jumped = bench.add("?", OBJECT, jump_forward=False), bench.add("!", OBJECT)
    bench.drain()
    assert plain.text() == jumped.text()
    usage = jumped.last().usage
    assert usage["forced_tokens"] > 15 and usage["steps"] + usage["forced_tokens"] == usage["completion_tokens"]


def test_a_forced_beginning_is_read_with_the_prompt() -> None:
    bench = Bench(lambda _: '{"name": "bel", "age": 42}')
    heard = bench.add("?", OBJECT)
    bench.engine.step_and_deliver()
    assert bench.model.batches[0].chunks == ([*b'?{"name": "'],)
    assert heard.text() == '{"name": "b'


def test_a_document_that_is_forced_to_its_end_needs_no_step() -> None:
    bench = Bench(echo)
    heard, other = bench.add("?", 'root ::= "yes"', n=2), bench.add("ab")
    bench.drain()
    assert [heard.text(i) for i in range(2)] == ["yes", "yes"] and heard.num_closed == 1
    assert heard.last().finish_reason == "stop" and heard.last().usage["steps"] == 0
    assert other.text() == "AB" and all(len(b.rows) == 1 for b in bench.model.batches)


def test_log_probs_come_for_every_token_so_such_a_request_is_not_jumped() -> None:
    bench = Bench(lambda _: '{"name": "bel", "age": 42}')
    heard = bench.add("?", OBJECT, logprobs=2)
    bench.drain()
    entries = [entry for e in heard.events for entry in e.logprobs or ()]
    assert bytes(b for e in entries for b in e.bytes).decode() == heard.text()
    assert all(len(e.top) == 2 and e.logprob <= 0 for e in entries)


def test_a_stop_string_inside_a_document_is_text() -> None:
    bench = Bench(lambda _: '{"name": "bel", "age": 42}')
    heard = bench.add("?", OBJECT, stop=('"', "e"))
    bench.drain()
    assert heard.text() == '{"name": "bel", "age": 42}'


@pytest.mark.parametrize(
    "penalty", [{"frequency_penalty": 2.0}, {"presence_penalty": 2.0}, {"repetition_penalty": 10.0}]
)
def test_a_penalty_moves_the_draw_away_from_what_was_said(penalty: dict[str, float]) -> None:
    bench = Bench(lambda _: "aaaa")
    bench.model.forward = _nearly_flat  # type: ignore[method-assign]
    heard = bench.add("?", max_tokens=2, **penalty)
    bench.drain()
    assert heard.text() == "ab"


def _nearly_flat(batch: object) -> torch.Tensor:
    logits = torch.zeros(1, 258)
    logits[0, ord("a")], logits[0, ord("b")] = 2.0, 1.0
    return logits


def test_seeds_draw_the_same_alone_and_in_company() -> None:
    def draw(company: int) -> str:
        bench = Bench(lambda _: "", rows=8)
        bench.model.forward = lambda batch: torch.zeros(len(batch.sampling), 258)  # type: ignore[method-assign]
        for i in range(company):
            bench.add("x", max_tokens=9, temperature=1.0, seed=i)
        heard = bench.add("x", max_tokens=9, temperature=1.0, seed=1234)
        bench.drain()
        return str([e.token_ids for e in heard.events])

    assert draw(0) == draw(5) == draw(7)


@pytest.mark.parametrize(("value", "message"), [(float("nan"), "not numbers"), (float("-inf"), "no token")])
def test_a_row_without_a_distribution_fails_alone(value: float, message: str) -> None:
    bench = Bench(echo)
    forward = bench.model.forward

    def poisoned(batch: object) -> torch.Tensor:
        logits = forward(batch)  # type: ignore[arg-type]
        logits[0] = value
        return logits

    bench.model.forward = poisoned  # type: ignore[method-assign]
    bad, good = bench.add("aa"), bench.add("bb")
    bench.engine.step_and_deliver()
    bench.model.forward = forward  # type: ignore[method-assign]
    bench.drain()
    assert bad.error is not None and message in bad.error.message and bad.num_closed == 1
    assert good.text() == "BB" and good.error is None


def started(bench: Bench) -> Engine:
    bench.engine.start()
    return bench.engine


def test_the_thread_serves_requests_until_it_is_stopped() -> None:
    bench = Bench(echo)
    engine = started(bench)
    request, heard = bench.request("abc")
    engine.submit(request)
    assert heard.done.wait(5) and heard.text() == "ABC" and engine.is_healthy
    engine.stop(5)
    with pytest.raises(RequestError, match="shutting down") as refused:
        engine.submit(bench.request("abc")[0])
    assert refused.value.status == 503


def test_a_step_that_raises_ends_every_request_and_the_engine_says_so() -> None:
    bench = Bench(echo)

    def broken(batch: object) -> torch.Tensor:
        raise RuntimeError("no memory")

    bench.model.forward = broken  # type: ignore[method-assign]
    requests = [bench.request(p) for p in ("abc", "def")]
    for request, _ in requests:
        bench.engine.submit(request)
    engine = started(bench)
    for _, heard in requests:
        assert heard.done.wait(5) and heard.error is not None
        assert heard.error.status == 500 and "no memory" in heard.error.message
    assert not engine.is_healthy and bench.numbers.values["guided_healthy"] == 0
    assert "RuntimeError: no memory" in bench.reports[0]
    with pytest.raises(RequestError, match="no memory"):
        engine.submit(bench.request("abc")[0])


def test_a_step_that_fails_half_way_leaves_no_request_without_an_end() -> None:
    bench = Bench(echo)
    requests = [bench.request(p) for p in ("a", "b")]
    for request, _ in requests:
        bench.engine.submit(request)

    def broken(*_: object) -> None:
        raise RuntimeError("half way")

    bench.scheduler.leave = broken  # type: ignore[method-assign]
    bench.engine.start()
    assert all(heard.done.wait(5) for _, heard in requests)
    assert [heard.num_closed for _, heard in requests] == [1, 1] and not bench.engine.is_healthy


def test_a_matcher_that_fails_ends_its_own_request_only() -> None:
    bench = Bench(echo)
    request, bad = bench.request("a", YES_NO, jump_forward=False)

    def broken(token_id: int) -> bool:
        raise RuntimeError("matcher")

    request.choices[0].matcher.accept = broken  # type: ignore[union-attr,method-assign]
    bench.scheduler.add(request)
    good = bench.add("bc")
    bench.drain()
    assert bad.error is not None and bad.error.status == 500 and bad.num_closed == 1
    assert good.text() == "BC" and "RuntimeError: matcher" in bench.reports[0]


def test_a_full_queue_refuses_with_both_numbers() -> None:
    bench = Bench(echo, queue_size=2)
    for _ in range(2):
        bench.engine.submit(bench.request("abc")[0])
    with pytest.raises(RequestError, match="limit is 2, got 3") as refused:
        bench.engine.submit(bench.request("abc")[0])
    assert refused.value.status == 429


def test_stopping_ends_what_still_waits() -> None:
    bench = Bench(lambda _: "a" * 40, rows=1)
    requests = [bench.request("abc") for _ in range(3)]
    for request, _ in requests:
        bench.engine.submit(request)
    bench.engine.start()
    bench.engine.stop(5)
    assert [heard.num_closed for _, heard in requests] == [1, 1, 1]


def test_metrics_tell_tokens_rows_and_ends() -> None:
    bench = Bench(echo)
    bench.add("abc")
    bench.add("abcdef", max_tokens=4)
    bench.drain()
    values = bench.numbers.values
    assert values["guided_generated_tokens_total"] == 7 and values["guided_running_rows"] == 0
    assert values["guided_stopped_choices_total"] == values["guided_truncated_choices_total"] == 1
    assert len(bench.numbers.observed["guided_time_to_first_token_seconds"]) == 2
