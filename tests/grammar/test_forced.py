"""A grammar that would write endlessly without a choice is refused."""

from __future__ import annotations

from typing import Any

import pytest
from guided_grammar.compiler import compile_spec
from guided_grammar.errors import LimitExceeded
from guided_grammar.spec import GrammarSpec, Kind


def doubling(levels: int, first: str = "root ::= r0") -> str:
    return "\n".join([first, *(f"r{i} ::= r{i + 1} r{i + 1}" for i in range(levels)), f'r{levels} ::= "a"'])


REFUSED: dict[str, tuple[Kind, Any]] = {
    "doubling_rules": (Kind.GBNF, doubling(19)),
    "doubling_rules_behind_a_choice": (Kind.GBNF, doubling(40, 'root ::= "x" | [yz] r0')),
    "a_repetition_of_a_repetition": (Kind.GBNF, 'root ::= r{1000}\nr ::= "ab"{1000}'),
    "many_required_items": (Kind.JSON_SCHEMA, {"schema": {"type": "array", "items": {"const": 1}, "minItems": 10**6}}),
    "doubling_behind_a_needless_choice": (Kind.GBNF, doubling(40, 'root ::= "a"? r0')),
}
ACCEPTED: dict[str, tuple[Kind, Any]] = {
    "doubling_below_the_limit": (Kind.GBNF, doubling(18)),
    "endless_but_never_forced": (Kind.GBNF, 'root ::= "(" root ")" | "x"'),
    "a_rule_without_an_end_beside_one_with": (Kind.GBNF, 'root ::= a | "x"\na ::= "y" a | "z"'),
    "many_allowed_items": (
        Kind.JSON_SCHEMA,
        {"schema": {"type": "array", "items": {"type": "integer"}, "maxItems": 10**6}},
    ),
    "many_required_items": (
        Kind.JSON_SCHEMA,
        {"schema": {"type": "array", "items": {"type": "integer"}, "minItems": 10**5}},
    ),
    "a_doubling_of_choices": (Kind.GBNF, doubling(40).replace('"a"', "[ab]")),
}


@pytest.mark.parametrize(("kind", "value"), REFUSED.values(), ids=list(REFUSED))
def test_what_forces_more_than_the_limit_is_refused(kind: Kind, value: Any) -> None:
    with pytest.raises(LimitExceeded):
        compile_spec(GrammarSpec(kind, value))


@pytest.mark.parametrize(("kind", "value"), ACCEPTED.values(), ids=list(ACCEPTED))
def test_what_forces_little_is_accepted(kind: Kind, value: Any) -> None:
    assert compile_spec(GrammarSpec(kind, value)).text


def test_the_refusal_names_limit_and_value() -> None:
    with pytest.raises(LimitExceeded, match="forced characters limit is 262144, got 524288"):
        compile_spec(GrammarSpec(Kind.GBNF, doubling(19)))
