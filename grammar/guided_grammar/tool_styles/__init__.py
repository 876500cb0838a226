"""How each style of a format row writes one call's arguments, as grammar."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from guided_grammar.budget import Budget
from guided_grammar.formats import CallStyle, ToolFormat
from guided_grammar.ir import Expr, Rules
from guided_grammar.limits import Limits
from guided_grammar.tool_styles import gemma_call, json_call, python_call, xml_call

Writer = Callable[[ToolFormat, dict[str, Any], Rules, Budget, Limits], Expr]
"""(row, schema of objects, rules, budget, limits) -> the texts of the arguments."""

WRITERS: dict[CallStyle, Writer] = {
    CallStyle.JSON: json_call.arguments,
    CallStyle.XML: xml_call.arguments,
    CallStyle.PYTHON: python_call.arguments,
    CallStyle.GEMMA: gemma_call.arguments,
    CallStyle.HARMONY: json_call.arguments,
}
