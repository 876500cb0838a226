"""A constraint -> grammar text of the mask engine. Pure and torch-free: the same call checks a request at the door.

An answer begins with its first character: no blanks stand before a document (the bound of F54 is met with none).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from guided_grammar.budget import Budget
from guided_grammar.choice import choice_expr
from guided_grammar.emit import to_ebnf
from guided_grammar.errors import InvalidConstraint, LimitExceeded
from guided_grammar.forced import check_forced
from guided_grammar.formats import tool_format
from guided_grammar.gbnf import parse_gbnf
from guided_grammar.ir import Expr, Rules, alt
from guided_grammar.limits import DEFAULT_LIMITS, Limits
from guided_grammar.place import Place
from guided_grammar.reach import reach
from guided_grammar.regex import regex_expr
from guided_grammar.schema import compile_into
from guided_grammar.spec import GrammarSpec, Kind
from guided_grammar.structural_tag import structural_expr
from guided_grammar.tools import tools_expr


@dataclass(frozen=True)
class Compiled:
    """Grammar text, and the added tokens of a vocabulary (by text) that may stand for their own text in it."""

    text: str
    markers: frozenset[str] = frozenset()


def compile_spec(spec: GrammarSpec, limits: Limits = DEFAULT_LIMITS) -> Compiled:
    """Grammar text whose sentences are the answers `spec` allows.

    Raises GrammarError: InvalidConstraint, UnsupportedConstraint, UnsatisfiableConstraint or LimitExceeded.
    `spec.kind` must not be FREE, which has no grammar.
    """
    try:
        rules, root = rules_of(spec, limits)
        found = reach(rules, root)
        check_forced(rules, root, found, limits)
        text = to_ebnf(rules, root, limits, found)
    except RecursionError:
        raise LimitExceeded("nesting", limits.json_depth, None, keyword=spec.kind.value) from None
    return Compiled(text, tool_format(spec.value["format"]).markers if spec.kind is Kind.TOOLS else frozenset())


_FIELDS = {
    Kind.REGEX: "guided_regex",
    Kind.GBNF: "gbnf",
    Kind.CHOICE: "choice",
    Kind.TOOLS: "tools",
    Kind.STRUCTURAL_TAG: "structural_tag",
}
"""What a refusal names that no part of the constraint explains."""


def rules_of(spec: GrammarSpec, limits: Limits = DEFAULT_LIMITS) -> tuple[Rules, Expr]:
    """The rules and the root that `compile_spec` emits. Raises its errors, or RecursionError."""
    budget = Budget(limits)
    rules = Rules(budget.places)
    budget.places.current = Place(_FIELDS.get(spec.kind, "schema"))
    return rules, _expr(spec, rules, budget, limits)


def _expr(spec: GrammarSpec, rules: Rules, budget: Budget, limits: Limits) -> Expr:
    match spec.kind:
        case Kind.JSON_OBJECT:
            return compile_into({"type": "object"}, rules, budget, limits, "declared")
        case Kind.JSON_SCHEMA:
            return _schema_expr(spec.value, rules, budget, limits)
        case Kind.REGEX:
            if not isinstance(spec.value, str):
                raise InvalidConstraint(f"must be a string, got {type(spec.value).__name__}", keyword="guided_regex")
            return regex_expr(spec.value, rules, budget)
        case Kind.GBNF:
            return parse_gbnf(spec.value, rules, limits)
        case Kind.CHOICE:
            return choice_expr(spec.value, rules, limits)
        case Kind.TOOLS:
            return _calls_expr(spec.value, rules, budget, limits)
        case Kind.STRUCTURAL_TAG:
            return structural_expr(spec.value, rules, budget, limits)
    raise InvalidConstraint(f"{spec.kind.value} has no grammar", keyword="constraint")


def _calls_expr(value: Any, rules: Rules, budget: Budget, limits: Limits) -> Expr:
    """Calls, or the answers of the spec that `or` holds."""
    calls = tools_expr(value, rules, budget, limits)
    if value.get("or") is None:
        return calls
    other = GrammarSpec.from_json(json.dumps(value["or"]))
    if other.kind is Kind.TOOLS:
        raise InvalidConstraint("must not hold tools itself", keyword="or")
    return alt(calls, _expr(other, rules, budget, limits))


def _schema_expr(value: Any, rules: Rules, budget: Budget, limits: Limits) -> Expr:
    """The limit on schema bytes is checked on the compact text here; the door checks the text as received."""
    if not isinstance(value, dict) or "schema" not in value:
        raise InvalidConstraint("must hold a schema", keyword="json_schema")
    order = value.get("order", "declared")
    if order not in ("declared", "sorted"):
        raise InvalidConstraint(f"order must be declared or sorted, got {order!r}", keyword="json_schema")
    size = len(json.dumps(value["schema"], ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))
    if size > limits.schema_bytes:
        raise LimitExceeded("schema bytes", limits.schema_bytes, size, keyword="json_schema")
    return compile_into(value["schema"], rules, budget, limits, order)
