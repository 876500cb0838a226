"""What is refused before the engine sees it, with the field at fault; what is accepted runs."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from guided_engine.intake import Intake
from guided_engine.metrics import Metrics
from guided_engine.protocol import GenerateRequest, SamplingParams
from guided_grammar.pool import PoolBusy, PoolClosed
from guided_grammar.spec import FREE, GrammarSpec, Kind
from guided_testing.byte_tokenizer import EOS
from guided_testing.engine_fakes import Bench, ByteTokenizer, Listener, byte_grammars

CHOICE = GrammarSpec(Kind.CHOICE, ["yes", "no"]).to_json()


@pytest.fixture
def served() -> Iterator[tuple[Bench, Intake, Any]]:
    bench, grammars = Bench(lambda prompt: prompt.upper()), byte_grammars()
    intake = Intake(
        bench.engine,
        ByteTokenizer(),
        grammars,
        Metrics(bench.numbers),
        max_len=64,
        max_choices=4,
        stop_ids=frozenset({EOS}),
        max_pending=8,
        jump_forward=True,
    )
    bench.engine.start()
    yield bench, intake, grammars
    intake.stop()
    bench.engine.stop(5)


def ask(intake: Intake, tensors: dict[str, Any]) -> Listener:
    heard = Listener()
    intake.accept(tensors, heard)
    assert heard.done.wait(5)
    return heard


def request(text: str | None = "hello", ids: tuple[int, ...] | None = None, **kwargs: Any) -> dict[str, Any]:
    rest = {k: kwargs.pop(k) for k in ("constraint", "exclude_input") if k in kwargs}
    return GenerateRequest(text, ids, SamplingParams(**{"temperature": 0.0, **kwargs}), **rest).encode()


@pytest.mark.parametrize(
    ("tensors", "param", "message"),
    [
        (request("x" * 64), "text_input", "context holds 64 tokens: the prompt alone has 64"),
        (request(None, (1,) * 65), "input_ids", "context holds 64 tokens: the prompt alone has 65"),
        (request(max_tokens=60), "max_tokens", "context holds 64 tokens: the prompt has 5 and max_tokens asks for 60"),
        (request(""), "text_input", "prompt is empty"),
        (request(None, (5, 9999)), "input_ids", "vocabulary has 258 ids, got id 9999"),
        (request(stop_token_ids=(258,)), "stop_token_ids", "got id 258"),
        (request(logit_bias={-1: 1.0}), "logit_bias", "got id -1"),
        (request(n=5), "n", "n limit is 4, got 5"),
        ({}, "text_input", "exactly one of"),
        ({**request(), "sampling_parameters": np.array([b'{"best_of": 3}'], object)}, "best_of", "not honoured"),
        (
            {**request(), "sampling_parameters": np.array([b'{"priority": 1.5}'], object)},
            "priority",
            "from -1000 to 1000",
        ),
        (
            {**request(), "sampling_parameters": np.array([b'{"queue_seconds": -1}'], object)},
            "queue_seconds",
            "from 0.0",
        ),
        ({**request(), "sampling_parameters": np.array([b'{"client": 7}'], object)}, "client", "must be a str"),
        ({**request(), "sampling_parameters": np.array([b'{"jump_forward": 1}'], object)}, "jump_forward", "a bool"),
        ({**request(), "sampling_parameters": np.array([b"[" * 99_999], object)}, "sampling_parameters", "not JSON"),
        (request(constraint='{"kind": "choice", "value": []}'), "constraint", "choice"),
        *(
            (request(constraint=text), "constraint", "must be a JSON object whose kind is one of free, ")
            for text in ("null", "[]", "7", "{}", '{"kind": null}', '{"kind": []}', '{"kind": "json"}')
        ),
    ],
)
def test_a_request_that_cannot_be_served_is_refused(
    served: tuple[Bench, Intake, Any], tensors: dict[str, Any], param: str, message: str
) -> None:
    bench, intake, _ = served
    heard = ask(intake, tensors)
    assert heard.error is not None and heard.events == [] and heard.num_closed == 1
    assert (heard.error.status, heard.error.param) == (400, param)
    assert re.search(message, heard.error.message)
    assert bench.model.batches == []


def test_a_refused_constraint_carries_its_fields(served: tuple[Bench, Intake, Any]) -> None:
    heard = ask(served[1], request(constraint='{"kind": "choice", "value": 7}'))
    assert heard.error is not None and heard.error.detail["code"] == "invalid_constraint"
    assert served[0].numbers.values["guided_refused_constraints_total"] == 1


def test_a_constrained_request_runs_and_reports_its_compile_time(served: tuple[Bench, Intake, Any]) -> None:
    heard = ask(served[1], request(constraint=CHOICE))
    timings = heard.last().timings
    assert heard.text() in ("yes", "no") and timings is not None and timings["compile"] > 0
    assert served[2].num_asked == 1


def test_a_constraint_is_compiled_in_the_turn_of_its_client(served: tuple[Bench, Intake, Any]) -> None:
    ask(served[1], request(constraint=CHOICE, client="tenant"))
    assert served[2]._specs.clients == ["tenant"]


def test_the_last_event_tells_the_context(served: tuple[Bench, Intake, Any]) -> None:
    events = ask(served[1], request()).events
    assert [event.context for event in events] == [*([None] * (len(events) - 1)), 64]


@pytest.mark.parametrize("constraint", ["", FREE.to_json()])
def test_f82_an_unconstrained_request_leaves_the_grammar_engine_alone(
    served: tuple[Bench, Intake, Any], constraint: str
) -> None:
    heard = ask(served[1], request(constraint=constraint))
    assert heard.text() == "HELLO" and served[2].num_asked == 0
    assert "guided_constrained_requests_total" not in served[0].numbers.values


def test_the_prompt_is_repeated_when_asked_for(served: tuple[Bench, Intake, Any]) -> None:
    assert ask(served[1], request(exclude_input=False)).text() == "helloHELLO"
    assert ask(served[1], request(None, tuple(b"abc"), exclude_input=False)).text() == "abcABC"


def test_a_slow_compile_does_not_hold_up_a_free_request(
    served: tuple[Bench, Intake, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, intake, grammars = served
    release = threading.Event()
    monkeypatch.setattr(grammars, "matchers", lambda constraint, count, client: release.wait(5) and None)
    slow = Listener()
    intake.accept(request(constraint=CHOICE), slow)
    assert ask(intake, request()).text() == "HELLO" and not slow.done.is_set()
    release.set()
    assert slow.done.wait(5)


def test_requests_on_their_way_are_bounded(served: tuple[Bench, Intake, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    _, intake, grammars = served
    release = threading.Event()
    monkeypatch.setattr(grammars, "matchers", lambda constraint, count, client: release.wait(5) and None)
    heard = [Listener() for _ in range(12)]
    for listener in heard:
        intake.accept(request(constraint=CHOICE), listener)
    refused = [h for h in heard if h.error is not None]
    release.set()
    assert all(h.done.wait(5) for h in heard)
    assert len(refused) == 4 and {h.error.status for h in refused if h.error} == {429}
    assert ask(intake, request()).text() == "HELLO"


@pytest.mark.parametrize("error", [PoolBusy("no worker"), PoolClosed("closed")])
def test_a_compile_that_nobody_can_take_is_a_503(
    served: tuple[Bench, Intake, Any], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def busy(constraint: str, count: int, client: str) -> None:
        raise error

    monkeypatch.setattr(served[2], "matchers", busy)
    heard = ask(served[1], request(constraint=CHOICE))
    assert heard.error is not None and heard.error.status == 503


def test_stopping_refuses_what_is_on_its_way(served: tuple[Bench, Intake, Any]) -> None:
    served[1].stop()
    heard = ask(served[1], request())
    assert heard.error is not None and heard.error.status == 503


@pytest.mark.parametrize(("asked", "forced"), [(True, 3), (False, 0)])
def test_a_request_may_turn_forced_text_off(served: tuple[Bench, Intake, Any], asked: bool, forced: int) -> None:
    heard = ask(served[1], request(constraint=GrammarSpec(Kind.CHOICE, ["yes"]).to_json(), jump_forward=asked))
    usage = heard.last().usage
    assert heard.text() == "yes" and usage is not None and usage["forced_tokens"] == forced
