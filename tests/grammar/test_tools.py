"""Tools x choice x parallel -> the texts that may be written."""

from __future__ import annotations

from typing import Any

import pytest
from guided_grammar.compiler import compile_spec
from guided_grammar.errors import (
    GrammarError,
    InvalidConstraint,
    LimitExceeded,
    UnsatisfiableConstraint,
    UnsupportedConstraint,
)
from guided_grammar.limits import Limits
from guided_grammar.spec import GrammarSpec, Kind
from guided_testing.byte_tokenizer import accepts, compile_bytes

CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
WEATHER = {"name": "get_weather", "parameters": CITY, "strict": True}
TIME = {"name": "get_time", "parameters": {"type": "object", "properties": {}, "additionalProperties": False}}


def call(name: str, arguments: str) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


PARIS = call("get_weather", '{"city": "Paris"}')
NOW = call("get_time", "{}")
WRONG = [
    "",
    "Hello",
    call("get_weather", "{}"),
    call("get_weather", '{"city": 1}'),
    call("get_time", '{"x": 1}'),
    call("other", "{}"),
    PARIS + " more",
    PARIS[:-1],
]


def spec(choice: Any, parallel: bool = True, tools: Any = (WEATHER, TIME)) -> GrammarSpec:
    return GrammarSpec(Kind.TOOLS, {"format": "hermes", "tools": list(tools), "choice": choice, "parallel": parallel})


@pytest.mark.parametrize(
    ("choice", "parallel", "accepted", "rejected"),
    [
        ("required", True, [PARIS, NOW, f"{PARIS}\n{NOW}", f"{NOW}\n{NOW}\n{PARIS}"], [*WRONG, PARIS + PARIS]),
        ("required", False, [PARIS, NOW], [*WRONG, f"{PARIS}\n{NOW}"]),
        ({"name": "get_weather"}, True, [PARIS], [*WRONG, NOW, f"{PARIS}\n{PARIS}", "Hello " + PARIS]),
        ({"name": "get_time"}, False, [NOW], [*WRONG, PARIS]),
        (
            "auto",
            True,
            ["", "Hello", "a < b, <tool>", PARIS, f"Let me see. {PARIS} and {NOW}.", f"{PARIS}\n{NOW}", "<tool_cal"],
            ["<tool_call>", "x<tool_call>y", PARIS[:-1], call("get_weather", "{}"), call("other", "{}")],
        ),
        (
            "auto",
            False,
            ["", "Hello", PARIS, f"Let me see. {PARIS}"],
            [f"{PARIS}\n{NOW}", f"{PARIS} done", "<tool_call>"],
        ),
    ],
)
def test_only_calls_that_the_request_allows_can_be_written(
    choice: Any, parallel: bool, accepted: list[str], rejected: list[str]
) -> None:
    compiled = compile_bytes(compile_spec(spec(choice, parallel)).text)
    assert [s for s in accepted if not accepts(compiled, s)] == []
    assert [s for s in rejected if accepts(compiled, s)] == []


@pytest.mark.parametrize(
    "tool",
    [
        {"name": "f"},
        {"name": "f", "parameters": None},
        {"name": "f", "parameters": {}},
        {**WEATHER, "name": "f", "strict": False},
    ],
    ids=["absent", "null", "empty", "not strict"],
)
def test_without_an_enforced_schema_any_json_object_is_an_argument(tool: dict[str, Any]) -> None:
    compiled = compile_bytes(compile_spec(spec("required", tools=[tool])).text)
    accepted = ["{}", '{"city": 1}', '{"a": {"b": [null, true, -1.5, "x\\n"]}}']
    assert [s for s in accepted if not accepts(compiled, call("f", s))] == []
    assert [s for s in ("[]", "1", '"x"', "null", "{", "{'a': 1}") if accepts(compiled, call("f", s))] == []


def test_arguments_stay_objects_where_the_schema_does_not_say_so() -> None:
    tools = [
        {"name": "f", "parameters": {"properties": {"n": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}}}
    ]
    compiled = compile_bytes(compile_spec(spec("required", tools=tools)).text)
    assert accepts(compiled, call("f", '{"n": 1}'))
    assert not accepts(compiled, call("f", '{"n": "1"}')) and not accepts(compiled, call("f", "[]"))


def test_names_and_keys_are_written_as_json() -> None:
    compiled = compile_bytes(compile_spec(spec({"name": 'a"b'}, tools=[{"name": 'a"b'}])).text)
    assert accepts(compiled, call('a\\"b', "{}"))


def test_tools_whose_names_share_a_beginning_are_told_apart() -> None:
    tools = [{"name": n, "parameters": {"type": "object", "required": [n]}} for n in ("get", "get_all", "get_all_of")]
    compiled = compile_bytes(compile_spec(spec("required", tools=tools)).text)
    for name in ("get", "get_all", "get_all_of"):
        assert accepts(compiled, call(name, f'{{"{name}": 1}}'))
        assert not accepts(compiled, call(name, "{}"))


def test_the_grammar_names_the_markup_that_a_vocabulary_may_hold_as_tokens() -> None:
    assert compile_spec(spec("auto")).markers == {"<tool_call>", "</tool_call>"}


def test_the_schema_that_is_refused_is_named_with_its_tool_and_path() -> None:
    bad = {"name": "bad", "parameters": {"type": "object", "properties": {"p": {"type": "string", "pattern": "(?=a)"}}}}
    with pytest.raises(UnsupportedConstraint, match="tool 'bad'") as caught:
        compile_spec(spec("required", tools=[WEATHER, TIME, bad]))
    assert caught.value.path.startswith("/tools/2/function/parameters/properties/p")
    assert caught.value.keyword == "pattern"


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"type": "string"}, UnsatisfiableConstraint),
        ({"type": "object", "required": ["a"], "maxProperties": 0}, UnsatisfiableConstraint),
        ({"type": "object", "properties": 3}, InvalidConstraint),
        ("text", InvalidConstraint),
        (False, InvalidConstraint),
        ({"type": "object", "description": "x" * 20_000}, LimitExceeded),
    ],
)
def test_parameters_that_no_arguments_meet_are_refused(parameters: Any, error: type[GrammarError]) -> None:
    with pytest.raises(error) as caught:
        compile_spec(spec("required", tools=[{"name": "f", "parameters": parameters}]))
    assert caught.value.path.startswith("/tools/0/function/parameters")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "must be an object"),
        ({"format": "hermes"}, "at least one tool"),
        ({"format": "hermes", "tools": []}, "at least one tool"),
        ({"format": "hermes", "tools": [{"name": ""}]}, "needs a name"),
        ({"format": "hermes", "tools": [{"name": "f"}, {"name": "f"}]}, "'f' is declared twice"),
        ({"format": "hermes", "tools": [{"name": "f", "strict": "yes"}]}, "true or false"),
        ({"format": "hermes", "tools": [TIME], "choice": {"name": "g"}}, "names no declared tool"),
        ({"format": "hermes", "tools": [TIME], "choice": "any"}, "names no declared tool"),
        ({"format": "hermes", "tools": [TIME], "parallel": 1}, "true or false"),
        ({"format": "nowhere", "tools": [TIME]}, "unknown tool format 'nowhere'"),
        ({"format": "content_only", "tools": [TIME]}, "has no tool calls"),
    ],
)
def test_a_malformed_request_is_invalid(value: Any, message: str) -> None:
    with pytest.raises(InvalidConstraint, match=message):
        compile_spec(GrammarSpec(Kind.TOOLS, value))


def test_the_number_of_tools_is_limited() -> None:
    with pytest.raises(LimitExceeded, match="tools limit is 1, got 2"):
        compile_spec(spec("auto"), Limits(tool_count=1))
