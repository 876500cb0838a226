"""Every kind of constraint, from its value to the texts it allows."""

from __future__ import annotations

from typing import Any

import pytest
from guided_grammar.compiler import compile_spec
from guided_grammar.errors import GrammarError, InvalidConstraint, LimitExceeded
from guided_grammar.limits import Limits
from guided_grammar.spec import FREE, GrammarSpec, Kind
from guided_testing.byte_tokenizer import accepts, compile_bytes

CASES: dict[str, tuple[GrammarSpec, list[str], list[str]]] = {
    "choice": (GrammarSpec(Kind.CHOICE, ["yes", "no"]), ["yes", "no"], ["", "maybe"]),
    "regex": (GrammarSpec(Kind.REGEX, "[0-9]{4}-[0-9]{2}"), ["2026-11"], ["2026-1", "x2026-11", ""]),
    "gbnf": (GrammarSpec(Kind.GBNF, 'root ::= "a" root | "b"'), ["b", "aab"], ["", "a"]),
    "json object": (
        GrammarSpec(Kind.JSON_OBJECT),
        ["{}", '{"a": {"b": [1, 2, {"c": null}]}, "": "\\u0000\\"é"}', '{"a": ' * 40 + "0" + "}" * 40],
        ["", "[]", "null", '{"a":}', '{"a": 01}', '{"a": 1,}', '{"a": "\n"}', "{} ", " {}", '{"a" 1}'],
    ),
    "json schema": (
        GrammarSpec(
            Kind.JSON_SCHEMA, {"schema": {"properties": {"b": {"type": "integer"}, "a": {}}, "type": "object"}}
        ),
        ['{"b": 1, "a": 2}', "{}"],
        ['{"a": 2, "b": 1}', '{"b": "x"}', "1"],
    ),
    "json schema, keys sorted": (
        GrammarSpec(
            Kind.JSON_SCHEMA,
            {"schema": {"properties": {"b": {"type": "integer"}, "a": {}}, "type": "object"}, "order": "sorted"},
        ),
        ['{"a": 2, "b": 1}'],
        ['{"b": 1, "a": 2}'],
    ),
    "any json": (GrammarSpec(Kind.JSON_SCHEMA, {"schema": True}), ["1", "null", '"x"', "[]"], ["", "x"]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_constraint_allows_its_answers_only(name: str) -> None:
    spec, accepted, rejected = CASES[name]
    compiled = compile_bytes(compile_spec(GrammarSpec.from_json(spec.to_json())).text)
    assert [s for s in accepted if not accepts(compiled, s)] == []
    assert [s for s in rejected if accepts(compiled, s)] == []


@pytest.mark.parametrize(
    "spec",
    [
        FREE,
        GrammarSpec(Kind.REGEX, None),
        GrammarSpec(Kind.REGEX, "("),
        GrammarSpec(Kind.GBNF, {}),
        GrammarSpec(Kind.CHOICE, "x"),
        GrammarSpec(Kind.JSON_SCHEMA, None),
        GrammarSpec(Kind.JSON_SCHEMA, {}),
        GrammarSpec(Kind.JSON_SCHEMA, {"schema": 1}),
        GrammarSpec(Kind.JSON_SCHEMA, {"schema": {}, "order": "any"}),
        GrammarSpec(Kind.TOOLS, []),
    ],
    ids=lambda spec: spec.to_json(),
)
def test_a_malformed_value_is_invalid(spec: GrammarSpec) -> None:
    with pytest.raises(InvalidConstraint):
        compile_spec(spec)


def test_a_schema_of_16_kib_is_accepted_and_one_byte_more_is_not() -> None:
    def spec(size: int) -> GrammarSpec:
        return GrammarSpec(
            Kind.JSON_SCHEMA, {"schema": {"const": 1, "title": "x" * (size - len('{"const":1,"title":""}'))}}
        )

    assert accepts(compile_spec(spec(16_384)).text, "1")
    with pytest.raises(LimitExceeded, match="schema bytes limit is 16384, got 16385"):
        compile_spec(spec(16_385))


def test_nesting_without_end_is_a_limit() -> None:
    schema: Any = {}
    for _ in range(3000):
        schema = {"not": schema}
    with pytest.raises(GrammarError):
        compile_spec(GrammarSpec(Kind.JSON_SCHEMA, {"schema": schema}))


def _schema(schema: dict[str, Any]) -> GrammarSpec:
    return GrammarSpec(Kind.JSON_SCHEMA, {"schema": schema})


def test_a_literal_as_long_as_a_regex_may_be_compiles_in_steps_that_grow_with_its_length() -> None:
    assert "x" * 4096 in compile_spec(GrammarSpec(Kind.REGEX, "x" * 4096), Limits(steps=30 * 4096)).text


COSTLY: dict[str, GrammarSpec] = {
    "wide modulus": _schema({"type": "integer", "multipleOf": 0.123456789}),
    "exactly one of many multiples": _schema({"oneOf": [{"type": "integer", "multipleOf": i} for i in range(2, 14)]}),
    "optional characters in a row": GrammarSpec(Kind.REGEX, "(a?b?)" * 600),
}


@pytest.mark.parametrize("spec", COSTLY.values(), ids=COSTLY.keys())
def test_work_without_a_small_grammar_is_refused_by_its_steps(spec: GrammarSpec) -> None:
    with pytest.raises(LimitExceeded, match="compile steps"):
        compile_spec(spec)
