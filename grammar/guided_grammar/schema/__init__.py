"""JSON Schema -> grammar. Exactly the values that a schema allows, in one canonical spelling, or a refusal."""

from __future__ import annotations

from typing import Any

from guided_grammar.budget import Budget
from guided_grammar.emit import to_ebnf
from guided_grammar.errors import LimitExceeded, UnsatisfiableConstraint
from guided_grammar.ir import NOTHING, Expr, Rules
from guided_grammar.limits import DEFAULT_LIMITS, Limits
from guided_grammar.schema.document import Document
from guided_grammar.schema.emit import Emitter
from guided_grammar.schema.expand import Expander


def compile_schema(schema: Any, limits: Limits = DEFAULT_LIMITS, *, order: str = "declared") -> str:
    """EBNF of the JSON texts of the values that `schema` (a dict or a boolean) allows.

    order: "declared" writes an object's keys in the order in which the schema names them, then required ones that no
    `properties` declares, then others; "sorted" writes named keys by code point. Separators are ", " and ": ".
    Drafts 4 to 2020-12 by `$schema` (default 2020-12). Formats are asserted, unknown keywords are annotations.
    Raises InvalidConstraint, UnsupportedConstraint, UnsatisfiableConstraint or LimitExceeded.
    """
    budget = Budget(limits)
    rules = Rules(budget.places)
    return to_ebnf(rules, compile_into(schema, rules, budget, limits, order), limits)


def compile_into(schema: Any, rules: Rules, budget: Budget, limits: Limits, order: str = "declared") -> Expr:
    """Add the rules of `schema` to `rules`; returns the expression of its texts. Means and raises as `compile_schema`,
    within what `budget` still holds."""
    try:
        expander = Expander(Document(schema, budget), budget)
        root = Emitter(expander, rules, order == "sorted").run(expander.root())
    except RecursionError:
        raise LimitExceeded("schema depth", limits.json_depth, None, keyword="schema") from None
    if root == NOTHING:
        raise UnsatisfiableConstraint("no JSON value satisfies this schema", keyword="schema")
    return root
