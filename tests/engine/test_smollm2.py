"""The embedded model: its weights, its tokenizer and the whole service, without a server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from guided_engine.config import EngineConfig
from guided_engine.protocol import Event, GenerateRequest, RequestError, SamplingParams
from guided_engine.service import Service
from guided_engine.weights import DEFAULT_MODEL, resolve
from guided_grammar.spec import GrammarSpec, Kind
from guided_testing.engine_fakes import Listener, Numbers
from transformers import AutoModelForCausalLM, AutoTokenizer

QUESTIONS = ("What is the capital of France?", "Count to five.", "Who wrote Hamlet?")


class Wire(Listener):
    """A `Reply` in memory."""

    def send(self, events: list[Event], final: bool) -> None:  # type: ignore[override]
        self.events += events
        if final:
            self.close()

    def fail(self, error: RequestError) -> None:
        self.close(error)

    def is_cancelled(self) -> bool:
        return self.cancelled


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    served = Service(EngineConfig(max_rows=4, max_model_len=256), Numbers(), print)
    yield served
    served.stop(10)


def chat(text: str) -> str:
    return f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"


def ask(service: Service, text: str, constraint: str = "", **sampling: Any) -> Wire:
    wire = Wire()
    params = SamplingParams(**{"temperature": 0.0, **sampling})
    service.accept(GenerateRequest(chat(text), None, params, constraint).encode(), wire)
    return wire


def test_greedy_answers_together_equal_generate_one_by_one(service: Service) -> None:
    path = resolve(DEFAULT_MODEL)
    tokenizer, model = (
        AutoTokenizer.from_pretrained(path),
        AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32),
    )
    wires = [ask(service, q, max_tokens=12) for q in QUESTIONS]
    for question, wire in zip(QUESTIONS, wires, strict=True):
        ids = tokenizer(chat(question), return_tensors="pt").input_ids
        wanted = model.generate(ids, max_new_tokens=12, do_sample=False)[0, ids.shape[1] :]
        assert wire.done.wait(120)
        assert wire.text() == tokenizer.decode(wanted, skip_special_tokens=True)


@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_p84_a_constrained_answer_conforms(service: Service, temperature: float) -> None:
    schema = {
        "type": "object",
        "properties": {
            "age": {"type": "integer", "minimum": 1, "maximum": 120},
            "class": {"enum": ["warrior", "mage", "rogue"]},
        },
        "required": ["class"],
        "additionalProperties": False,
    }
    spec = GrammarSpec(Kind.JSON_SCHEMA, {"schema": schema, "order": "sorted"})
    wire = ask(
        service, "A mage called Bel, 42 years old.", spec.to_json(), max_tokens=64, temperature=temperature, seed=3
    )
    assert wire.done.wait(120) and wire.error is None
    document = json.loads(wire.text())
    assert document["class"] in ("warrior", "mage", "rogue") and 1 <= document.get("age", 1) <= 120
    assert wire.last().finish_reason == "stop"


def test_the_facts_for_the_log_name_model_cache_and_grammar(service: Service) -> None:
    facts = "\n".join(service.facts)
    assert DEFAULT_MODEL in facts and "4 rows of 256 tokens" in facts and "Grammar engine ready in" in facts
