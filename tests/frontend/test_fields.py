"""Every optional field of both requests: which JSON types it takes, and where its range ends."""

from __future__ import annotations

import json
from typing import Any

import pytest
from guided_frontend import body
from guided_frontend.errors import BadRequest
from guided_frontend.schemas import ChatRequest, CompletionRequest, Fields

BASES: dict[str, tuple[type[Fields], dict[str, Any]]] = {
    "chat": (ChatRequest, {"messages": [{"role": "user", "content": "x"}]}),
    "text": (CompletionRequest, {"prompt": "x"}),
}
WHOLE, PART, BIT, TEXT, MANY, THING = "integer", "fraction", "boolean", "string", "array", "object"
SAMPLES: dict[str, Any] = {WHOLE: 1, PART: 0.5, BIT: False, TEXT: "auto", MANY: [], THING: {}}
NUMBER = {WHOLE, PART}
ANY = set(SAMPLES)

# Field to the JSON types of which some value is taken: the sample, or the one that a name with a value gives.
TAKEN: dict[str, dict[str, set[str]]] = {
    "both": {
        "model": {TEXT}, "n": {WHOLE}, "stream": {BIT}, "stream_options": {THING}, "seed": {WHOLE}, "temperature": NUMBER,
        "top_p": NUMBER, "top_k": {WHOLE}, "min_p": NUMBER, "stop": {TEXT, MANY}, "max_tokens": {WHOLE},
        "logit_bias": {THING}, "frequency_penalty": NUMBER, "presence_penalty": NUMBER, "repetition_penalty": NUMBER,
        "user": {TEXT}, "jump_forward": {BIT}, "guided_choice": {MANY}, "guided_regex": {TEXT}, "guided_grammar": {TEXT}, "guided_json": ANY,
        "structured_outputs": {THING}, "response_format": {THING},
    },
    "chat": {
        "max_completion_tokens": {WHOLE}, "logprobs": {BIT}, "top_logprobs": {WHOLE}, "tools": {MANY},
        "tool_choice": {TEXT, THING}, "parallel_tool_calls": {BIT}, "allow_tools_with_response_format": {BIT},
        "think": {BIT}, "reasoning_effort": {TEXT}, "thinking_token_budget": {WHOLE}, "chat_template_kwargs": {THING},
        "modalities": {MANY}, "metadata": {THING}, "store": {BIT}, "service_tier": {TEXT}, "safety_identifier": {TEXT},
        "prompt_cache_key": {TEXT}, "prompt_cache_retention": {TEXT},
    },
    "text": {"echo": {BIT}, "best_of": {WHOLE}, "logprobs": {WHOLE}},
}  # fmt: skip
SAMPLE_OF: dict[str, Any] = {
    "modalities": ["text"], "reasoning_effort": "low", "response_format": {"type": "text"},
    "tool_choice": {"type": "function", "function": {"name": "f"}},
}  # fmt: skip

# Field to the least and the greatest value that is taken, and a step beyond which nothing is.
RANGES: dict[str, dict[str, tuple[float, float, float]]] = {
    "both": {
        "n": (1, 16, 1), "seed": (-(2**63), 2**63 - 1, 1), "temperature": (0, 2, 0.001), "top_p": (0, 1, 0.001),
        "top_k": (-1, 2**31 - 1, 1), "min_p": (0, 1, 0.001), "max_tokens": (1, 2**31 - 1, 1),
        "frequency_penalty": (-2, 2, 0.001), "presence_penalty": (-2, 2, 0.001), "repetition_penalty": (0.01, 10, 0.001),
    },
    "chat": {"max_completion_tokens": (1, 2**31 - 1, 1), "top_logprobs": (0, 20, 1), "thinking_token_budget": (1, 2**31 - 1, 1)},
    "text": {"logprobs": (0, 20, 1), "best_of": (1, 1, 1)},
}  # fmt: skip


def of(table: dict[str, dict[str, Any]], endpoint: str) -> dict[str, Any]:
    return {**table["both"], **table[endpoint]}


def read(endpoint: str, name: str, value: Any) -> Any:
    kind, base = BASES[endpoint]
    return body.read(kind, json.dumps({**base, name: value}).encode())


def sample(name: str, kind: str) -> Any:
    special = SAMPLE_OF.get(name)
    return special if special is not None and isinstance(special, type(SAMPLES[kind])) else SAMPLES[kind]


@pytest.mark.parametrize("endpoint", BASES)
def test_the_tables_hold_every_optional_field(endpoint: str) -> None:
    fields = {f.alias or n: f for n, f in BASES[endpoint][0].model_fields.items()}
    assert set(of(TAKEN, endpoint)) == {name for name, field in fields.items() if not field.is_required()}
    numeric = {name for name, kinds in of(TAKEN, endpoint).items() if WHOLE in kinds and kinds != ANY}
    assert set(of(RANGES, endpoint)) == numeric


TYPES = [(e, name, kind) for e in BASES for name in of(TAKEN, e) for kind in SAMPLES]


@pytest.mark.parametrize(("endpoint", "name", "kind"), TYPES, ids=["-".join(t) for t in TYPES])
def test_a_field_takes_its_json_types_and_refuses_the_others_by_name(endpoint: str, name: str, kind: str) -> None:
    value = sample(name, kind)
    if kind in of(TAKEN, endpoint)[name]:
        read(endpoint, name, value)
        return
    with pytest.raises(BadRequest) as refused:
        read(endpoint, name, value)
    assert (refused.value.param or "").startswith(name) and name in refused.value.message


BOUNDS = [
    (e, name, value, inside)
    for e in BASES
    for name, (low, high, step) in of(RANGES, e).items()
    for value, inside in ((low, True), (high, True), (low - step, False), (high + step, False))
]


@pytest.mark.parametrize(("endpoint", "name", "value", "inside"), BOUNDS, ids=[f"{e}-{n}-{v}" for e, n, v, _ in BOUNDS])
def test_a_range_ends_where_the_table_says(endpoint: str, name: str, value: float, inside: bool) -> None:
    if inside:
        assert getattr(read(endpoint, name, value), name) == value
        return
    with pytest.raises(BadRequest) as refused:
        read(endpoint, name, value)
    assert refused.value.param == name and str(value) in refused.value.message


@pytest.mark.parametrize("endpoint", BASES)
@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1" * 5000])
def test_a_number_that_is_none_is_refused_in_every_numeric_field(endpoint: str, text: str) -> None:
    kind, base = BASES[endpoint]
    for name in of(RANGES, endpoint):
        raw = json.dumps({**base, name: 0}).replace(f'"{name}": 0', f'"{name}": {text}')
        with pytest.raises(BadRequest):
            body.read(kind, raw.encode())


SIZES: list[tuple[str, Any, Any]] = [
    ("stop", ["a"] * 4, ["a"] * 5), ("stop", "x" * 1024, "x" * 1025), ("stop", ["x"], [""]),
    ("modalities", ["text"], []), ("modalities", ["text"], ["audio"]),
    ("messages", [{"role": "user", "content": ""}], []),
    ("messages", [{"role": "user", "content": ""}], [{"role": "user", "content": []}]),
    *(("messages", [{"role": role, "content": ""}], [{"role": role, "content": None}]) for role in ("user", "system", "developer", "tool")),
    ("messages", [{"role": "assistant", "content": None}], [{"role": "assistant", "content": 3}]),
    ("tools", [{"type": "function", "function": {"name": "n" * 64}}], [{"type": "function", "function": {"name": "n" * 65}}]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "taken", "refused"), SIZES, ids=[f"{n}-{i}" for i, (n, *_) in enumerate(SIZES)])
def test_lists_and_texts_end_where_the_table_says(name: str, taken: Any, refused: Any) -> None:
    read("chat", name, taken)
    with pytest.raises(BadRequest) as error:
        read("chat", name, refused)
    assert (error.value.param or "").startswith(name)
