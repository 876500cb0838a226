from __future__ import annotations

import json
from typing import Any

import pytest
from guided_frontend import body
from guided_frontend.errors import BadRequest
from guided_frontend.schemas import ChatRequest, CompletionRequest, Fields

MESSAGES = [{"role": "user", "content": "x"}]
CHAT: tuple[type[Fields], dict[str, Any]] = (ChatRequest, {"messages": MESSAGES})
TEXT: tuple[type[Fields], dict[str, Any]] = (CompletionRequest, {"prompt": "x"})
OPTIONAL = [
    (kind, base, field.alias or name)
    for kind, base in (CHAT, TEXT)
    for name, field in kind.model_fields.items()
    if not field.is_required()
]


def read(fields: Any, **options: bool) -> Any:
    return body.read(ChatRequest, json.dumps({"messages": MESSAGES, **fields}).encode(), **options)


@pytest.mark.parametrize(("kind", "base", "name"), OPTIONAL, ids=[f"{k.__name__}-{n}" for k, _, n in OPTIONAL])
def test_f77_null_is_unset_for_every_optional_field(kind: type[Fields], base: dict[str, Any], name: str) -> None:
    assert body.read(kind, json.dumps({**base, name: None}).encode()) == body.read(kind, json.dumps(base).encode())


NESTED_NULLS: list[dict[str, Any]] = [
    {"messages": [{"role": "assistant", "content": None, "refusal": None, "function_call": None, "audio": None}]},
    {"tools": [{"type": "function", "function": {"name": "f", "strict": None, "parameters": None}}]},
    {"response_format": {"type": "json_object", "json_schema": None}},
    {"stream_options": {"include_usage": None}},
    {"structured_outputs": {"regex": "a", "json": None, "choice": None}},
]


@pytest.mark.parametrize("fields", NESTED_NULLS, ids=lambda f: next(iter(f)))
def test_f77_null_is_unset_inside_objects_too(fields: dict[str, Any]) -> None:
    read(fields)


def test_nulls_inside_a_schema_are_kept() -> None:
    assert read({"guided_json": {"enum": [None], "default": None}}).guided_json == {"enum": [None], "default": None}


WRONG: list[tuple[str, Any]] = [
    *((name, value) for name in ("n", "max_tokens", "seed", "top_logprobs", "top_k") for value in ("1", 1.5, True)),
    *((name, value) for name in ("temperature", "top_p", "min_p", "frequency_penalty") for value in ("1", True, [1])),
    *((name, value) for name in ("stream", "logprobs", "parallel_tool_calls", "think") for value in ("true", 1)),
    ("n", 0), ("n", 17), ("temperature", -0.1), ("temperature", 2.1), ("top_p", 1.1), ("min_p", -1),
    ("frequency_penalty", 2.5), ("presence_penalty", -2.5), ("repetition_penalty", 0), ("max_tokens", 0),
    ("top_logprobs", 21), ("top_k", -2), ("seed", 2**64), ("max_completion_tokens", -1),
    ("stop", ["a"] * 5), ("stop", ""), ("stop", [3]), ("logit_bias", {"1": "x"}), ("logit_bias", [1]),
    ("guided_choice", "yes"), ("guided_choice", [1]), ("guided_regex", 3), ("guided_grammar", ["x"]),
    ("messages", []), ("messages", "x"), ("messages", [{"role": "user", "content": 3}]),
    ("messages", [{"role": "robot", "content": "x"}]), ("messages", [{"content": "x"}]),
    ("messages", [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]),
    ("tools", [{"type": "code"}]), ("tools", [{"type": "function", "function": {"name": "a b"}}]),
    ("tool_choice", "any"), ("tool_choice", {"type": "function"}), ("stream_options", {"include_usage": "yes"}),
    ("response_format", "json_object"), ("response_format", {"type": "xml"}), ("response_format", {}),
    ("model", 3), ("metadata", {"a": 1}), ("chat_template_kwargs", []), ("modalities", ["audio"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), WRONG, ids=[f"{n}-{v!r}"[:60] for n, v in WRONG])
def test_a_value_of_the_wrong_type_or_range_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(BadRequest) as refused:
        read({name: value})
    assert refused.value.param is not None and refused.value.param.startswith(name)
    assert name in refused.value.message


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"messages": [*MESSAGES, {"role": "tool", "content": 3}]}, "messages[1].content"),
        ({"messages": [*MESSAGES, {"role": "x"}]}, "messages[1].role"),
        ({"messages": [*MESSAGES, {"role": "user"}]}, "messages[1].content"),
        ({"tools": [{"type": "function", "functions": {}}]}, "tools[0].functions"),
        ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name"),
        ({"response_format": {"type": "xml"}}, "response_format.type"),
        ({"messages": [{"role": "user", "contents": "x"}]}, "messages[0].contents"),
        ({"stream_options": {"usage": True}}, "stream_options.usage"),
    ],
)
def test_the_param_points_to_the_place(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(BadRequest) as refused:
        read(fields)
    assert refused.value.param == param


CONSTRAINT_LIKE = [
    ("grammar", "guided_grammar"), ("ebnf", "guided_grammar"), ("guided_lark", "guided_grammar"),
    ("regex", "guided_regex"), ("json_schema", "guided_json"), ("guided_schema", "guided_json"),
    ("choices", "guided_choice"), ("guided_decoding_backend", "guided_choice"), ("guided_whitespace_pattern", "guided_regex"),
    ("structured_output", "structured_outputs"), ("constraint", "structured_outputs"), ("format", "response_format"),
    ("functions", "tools"), ("function_call", "tool_choice"),
]  # fmt: skip


@pytest.mark.parametrize("ignorable", [False, True])
@pytest.mark.parametrize(("name", "spelling"), CONSTRAINT_LIKE)
def test_an_unknown_field_that_looks_like_a_constraint_is_told_the_spelling(
    name: str, spelling: str, ignorable: bool
) -> None:
    with pytest.raises(BadRequest) as refused:
        read({name: "x"}, ignore_unknown=ignorable)
    assert refused.value.param == name and spelling in refused.value.message
    read({name: None})


def test_an_error_stays_short_however_long_the_clients_names_are() -> None:
    with pytest.raises(BadRequest) as refused:
        read({"x" * 5000: 1})
    assert len(refused.value.message) < 1000 and len(refused.value.param or "") < 300


def test_any_other_unknown_field_is_refused_or_by_setting_ignored() -> None:
    with pytest.raises(BadRequest, match="unknown field 'best_friend'"):
        read({"best_friend": 1})
    assert read({"best_friend": 1}, ignore_unknown=True) == read({})
