from __future__ import annotations

import json
from itertools import combinations
from typing import Any

import pytest
from guided_frontend import constraint
from guided_frontend.errors import BadRequest
from guided_frontend.schemas import ChatRequest
from guided_grammar.formats import CONTENT_ONLY, HERMES, tool_format
from guided_grammar.spec import FREE, GrammarSpec, Kind

SCHEMA = {"type": "object", "properties": {"b": {}, "a": {}}}
CHOICE = {"guided_choice": ["yes", "no"]}
REGEX = {"guided_regex": "[0-9]+"}
GRAMMAR = {"guided_grammar": 'root ::= "x"'}
JSON = {"guided_json": SCHEMA}
FORMAT = {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "strict": False, "schema": SCHEMA}}}
IN_ORDER = [CHOICE, REGEX, GRAMMAR, JSON, FORMAT]
KINDS = [Kind.CHOICE, Kind.REGEX, Kind.GBNF, Kind.JSON_SCHEMA, Kind.JSON_SCHEMA]
TAGS: dict[str, Any] = {"structures": [{"begin": "<a>", "schema": {}, "end": "</a>"}], "triggers": ["<"]}


def tool(name: str, **fields: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, **fields}}


def named(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


TOOLS = {"tools": [tool("f", parameters=SCHEMA), tool("g", strict=False)]}


def body(**fields: Any) -> ChatRequest:
    return ChatRequest.model_validate({"messages": [{"role": "user", "content": "x"}], **fields})


def of(shows_tools: bool = True, **fields: Any) -> constraint.Constraint:
    return constraint.of_chat(body(**fields), HERMES if shows_tools else CONTENT_ONLY, shows_tools)


@pytest.mark.parametrize(("first", "second"), [*combinations(range(5), 2)])
def test_p29_p92_p93_of_two_constraints_the_earlier_in_the_order_wins(first: int, second: int) -> None:
    both = of(**IN_ORDER[second], **IN_ORDER[first])
    assert (both.spec, both.field) == (of(**IN_ORDER[first]).spec, next(iter(IN_ORDER[first])))
    assert both.spec.kind is KINDS[first]


def test_p29_of_all_constraints_choice_wins() -> None:
    assert of(**JSON, **GRAMMAR, **FORMAT, **REGEX, **CHOICE).spec == GrammarSpec(Kind.CHOICE, ["yes", "no"])


@pytest.mark.parametrize("choice", ["required", named("f")])
@pytest.mark.parametrize("other", IN_ORDER, ids=lambda o: next(iter(o)))
def test_p103_f59_a_forced_tool_wins_over_everything(choice: Any, other: dict[str, Any]) -> None:
    assert of(**TOOLS, **other, tool_choice=choice).spec.kind is Kind.TOOLS


@pytest.mark.parametrize("other", IN_ORDER, ids=lambda o: next(iter(o)))
def test_f58_any_constraint_wins_over_auto_tools_and_hides_them(other: dict[str, Any]) -> None:
    assert of(**TOOLS, **other) == of(**other)


def test_tools_and_a_response_format_share_one_grammar_when_asked_to() -> None:
    got = of(**TOOLS, **FORMAT, allow_tools_with_response_format=True)
    assert (got.spec.kind, got.field, len(got.shown)) == (Kind.TOOLS, "response_format", 2)
    assert got.spec.value["choice"] == "required"
    assert got.spec.value["or"] == {"kind": "json_schema", "value": of(**FORMAT).spec.value}


@pytest.mark.parametrize(
    ("fields", "same"),
    [
        ({**TOOLS, **JSON}, JSON),
        (FORMAT, FORMAT),
        ({**TOOLS, **FORMAT, "tool_choice": "none"}, FORMAT),
        (TOOLS, TOOLS),
        ({**TOOLS, **FORMAT, "tool_choice": "required"}, {**TOOLS, "tool_choice": "required"}),
    ],
)  # fmt: skip
def test_without_both_the_permission_changes_nothing(fields: dict[str, Any], same: dict[str, Any]) -> None:
    assert of(**fields, allow_tools_with_response_format=True) == of(**same)


@pytest.mark.parametrize("row", ["llama3_json", "pythonic", "gpt_oss"])
def test_a_format_whose_calls_look_like_documents_cannot_have_both(row: str) -> None:
    wanted = body(**TOOLS, **FORMAT, allow_tools_with_response_format=True)
    with pytest.raises(BadRequest, match="allow_tools_with_response_format"):
        constraint.of_chat(wanted, tool_format(row), True)


def test_f6_tools_travel_with_name_schema_and_strictness() -> None:
    assert of(**TOOLS, parallel_tool_calls=False, tool_choice=named("g")).spec.value == {
        "format": "hermes",
        "tools": [
            {"name": "f", "parameters": SCHEMA, "strict": True},
            {"name": "g", "parameters": None, "strict": False},
        ],
        "choice": {"name": "g"},
        "parallel": False,
    }


@pytest.mark.parametrize(
    ("choice", "sent", "shown"),
    [(None, "auto", 2), ("auto", "auto", 2), ("required", "required", 2), ("none", None, 0)],
)
def test_f20_f67_tool_choice_decides_what_is_called_and_shown(choice: Any, sent: str | None, shown: int) -> None:
    got = of(**TOOLS, tool_choice=choice)
    assert (got.spec.value or {}).get("choice") == sent and len(got.shown) == shown


def test_allowed_tools_restricts_the_calls_and_not_the_prompt() -> None:
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [named("g")]}}
    got = of(**TOOLS, tool_choice=allowed)
    assert [t["name"] for t in got.spec.value["tools"]] == ["g"] and got.spec.value["choice"] == "required"
    assert len(got.shown) == 2


@pytest.mark.parametrize("choice", ["required", named("f")])
def test_f22_f23_a_forced_call_without_tool_calling_is_refused(choice: Any) -> None:
    with pytest.raises(BadRequest, match="no tool calling"):
        of(shows_tools=False, **TOOLS, tool_choice=choice)


def test_f24_f25_f83_auto_without_tool_calling_constrains_and_shows_nothing() -> None:
    assert of(shows_tools=False, **TOOLS) == constraint.Constraint()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({**TOOLS, "tool_choice": named("nope")}, 'names function "nope" which is not in tools'),
        ({"tool_choice": named("nope")}, 'names function "nope" which is not in tools'),
        ({"tool_choice": "required"}, "needs tools"),
        ({"tools": [tool("f"), tool("f")]}, "twice"),
        ({"response_format": {"type": "json_schema"}}, "json_schema.schema is required"),
        ({"guided_json": "{"}, "guided_json is not JSON"),
        ({"structured_outputs": {"structural_tag": "{"}}, "structural_tag is not JSON"),
        (
            {"response_format": {"type": "text", "triggers": ["<"]}},
            "response_format.triggers needs type structural_tag",
        ),
        ({"structured_outputs": {"structural_tag": {}, "regex": "a"}}, "exactly one"),
        ({"guided_json": 3}, "must be a JSON Schema"),
        ({"structured_outputs": {"regex": "a", "choice": ["b"]}}, "exactly one"),
        ({"structured_outputs": {}}, "exactly one"),
    ],
)
def test_a_request_that_contradicts_itself_is_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        of(**fields)


@pytest.mark.parametrize(
    ("spelled", "guided"),
    [
        ({"choice": ["yes", "no"]}, CHOICE),
        ({"regex": "[0-9]+"}, REGEX),
        ({"grammar": 'root ::= "x"'}, GRAMMAR),
        ({"json": SCHEMA}, JSON),
        ({"json_object": True}, {"response_format": {"type": "json_object"}}),
        ({"structural_tag": TAGS}, {"response_format": {"type": "structural_tag", **TAGS}}),
        ({"structural_tag": json.dumps(TAGS)}, {"response_format": {"type": "structural_tag", **TAGS}}),
    ],
    ids=["choice", "regex", "grammar", "json", "json_object", "structural_tag", "structural_tag_text"],
)
def test_structured_outputs_is_another_spelling(spelled: dict[str, Any], guided: dict[str, Any]) -> None:
    assert of(structured_outputs=spelled).spec == of(**guided).spec


@pytest.mark.parametrize(
    ("fields", "spec"),
    [
        ({}, FREE),
        ({"response_format": {"type": "text"}}, FREE),
        ({"response_format": {"type": "json_object"}}, GrammarSpec(Kind.JSON_OBJECT)),
        ({"response_format": {"type": "structural_tag", **TAGS}}, GrammarSpec(Kind.STRUCTURAL_TAG, TAGS)),
        (FORMAT, GrammarSpec(Kind.JSON_SCHEMA, {"schema": SCHEMA, "order": "declared"})),
        (JSON, GrammarSpec(Kind.JSON_SCHEMA, {"schema": SCHEMA, "order": "sorted"})),
        ({"guided_json": True}, GrammarSpec(Kind.JSON_SCHEMA, {"schema": True, "order": "sorted"})),
        ({"guided_json": {}}, GrammarSpec(Kind.JSON_SCHEMA, {"schema": {}, "order": "sorted"})),
        ({"guided_json": '{"type": "null"}'}, GrammarSpec(Kind.JSON_SCHEMA, {"schema": {"type": "null"}, "order": "sorted"})),
    ],
)  # fmt: skip
def test_a_field_becomes_the_constraint(fields: dict[str, Any], spec: GrammarSpec) -> None:
    assert of(**fields).spec == spec


def test_p78_the_declared_order_of_keys_is_kept() -> None:
    assert list(of(**FORMAT).spec.value["schema"]["properties"]) == ["b", "a"]
