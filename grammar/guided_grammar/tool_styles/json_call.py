"""Arguments as a JSON object."""

from __future__ import annotations

from typing import Any

from guided_grammar.budget import Budget
from guided_grammar.formats import ToolFormat
from guided_grammar.ir import Expr, Rules
from guided_grammar.limits import Limits
from guided_grammar.schema import compile_into


def arguments(row: ToolFormat, schema: dict[str, Any], rules: Rules, budget: Budget, limits: Limits) -> Expr:
    """The JSON texts of the objects of `schema`."""
    return compile_into(schema, rules, budget, limits, "sorted" if row.is_sorted else "declared")
