from __future__ import annotations

from typing import Any

import pytest
from guided_grammar import second_opinion
from guided_grammar.second_opinion import FINE, UNTOLD, on_answer, on_calls
from guided_grammar.spec import FREE, GrammarSpec, Kind


def schema(value: Any) -> GrammarSpec:
    return GrammarSpec(Kind.JSON_SCHEMA, {"schema": value})


FINE_ANSWERS = [
    (schema({"type": "integer"}), "3"),
    (schema({"multipleOf": 0.01}), "1234567.89"),
    (schema({"minimum": 9007199254740993}), "9007199254740993"),
    (schema({"exclusiveMinimum": 0}), "0." + "0" * 400 + "1"),
    (schema({"format": "date"}), '"2024-02-29"'),
    (schema({"pattern": r"^\D$"}), '"٣"'),
    (GrammarSpec(Kind.JSON_OBJECT), '{"a": [1, null]}'),
    (GrammarSpec(Kind.CHOICE, ["yes", "no"]), "no"),
    (GrammarSpec(Kind.REGEX, "[0-9]{4}"), "2024"),
    (GrammarSpec(Kind.REGEX, " the [a-z]+"), "the end"),
]

FAULTS = [
    (schema({"type": "integer"}), "3.5", "integer"),
    (schema({"type": "integer"}), "3 3", "not JSON"),
    (schema(True), "NaN", "not a JSON value"),
    (schema(True), '"\ud800"', "not JSON"),
    (schema(True), '"\\ud800"', "not JSON"),
    (schema(True), '"\x01"', "not JSON"),
    (schema({"format": "date"}), '"2023-02-29"', "/format"),
    (schema({"properties": {"a": {"maxLength": 2}}}), '{"a": "abc"}', "/properties/a/maxLength"),
    (schema({"multipleOf": 0.01}), "0.015", "multipleOf"),
    (GrammarSpec(Kind.JSON_OBJECT), "[]", "object"),
    (GrammarSpec(Kind.CHOICE, ["yes", "no"]), "maybe", "choices"),
    (GrammarSpec(Kind.REGEX, "[0-9]{4}"), "20245", "regex"),
]

UNTOLD_ANSWERS = [
    (FREE, "anything"),
    (GrammarSpec(Kind.GBNF, 'root ::= "a"'), "b"),
    (schema({"$ref": "https://example.com/never-fetched"}), "1"),
]


@pytest.mark.parametrize(("spec", "text"), FINE_ANSWERS)
def test_an_answer_that_holds_is_fine(spec: GrammarSpec, text: str) -> None:
    assert on_answer(spec, text) == FINE


@pytest.mark.parametrize(("spec", "text", "named"), FAULTS)
def test_a_fault_is_told_and_named(spec: GrammarSpec, text: str, named: str) -> None:
    opinion = on_answer(spec, text)
    assert opinion.told and named in opinion.fault


@pytest.mark.parametrize(("spec", "text"), UNTOLD_ANSWERS)
def test_what_cannot_be_told_is_not_guessed(spec: GrammarSpec, text: str) -> None:
    assert on_answer(spec, text) == UNTOLD


TOOL = {"name": "f", "parameters": {"properties": {"a": {"type": "integer"}}, "required": ["a"]}}


def tools(choice: Any = "required", style: str = "hermes", **fields: Any) -> GrammarSpec:
    value = {"format": style, "tools": [TOOL | fields], "choice": choice, "parallel": True}
    return GrammarSpec(Kind.TOOLS, value)


CALLS = [
    ("declared and valid", tools(), [("f", '{"a": 1}')], ""),
    ("two, the second wrong", tools(), [("f", '{"a": 1}'), ("f", "{}")], "required"),
    ("not declared", tools(), [("g", "{}")], "none of the tools"),
    ("cut arguments", tools(), [("f", '{"a": ')], "not JSON"),
    ("none where one was forced", tools({"name": "f"}), [], "no call"),
    ("none where none was", tools("auto"), [], ""),
    ("any object where not strict", tools(strict=False), [("f", '{"b": 1}')], ""),
    ("no array where not strict", tools(strict=False), [("f", "[]")], "object"),
    ("a style whose nested values are free", tools(style="gemma4"), [("f", "{}")], ""),
]


@pytest.mark.parametrize(("spec", "calls", "named"), [c[1:] for c in CALLS], ids=[c[0] for c in CALLS])
def test_calls_are_held_to_their_tools(spec: GrammarSpec, calls: list[tuple[str, str]], named: str) -> None:
    fault = on_calls(spec, calls).fault
    assert named in fault and bool(named) == bool(fault)


def test_the_validator_is_installed_for_tests() -> None:
    assert second_opinion.is_available()
