"""Arguments as Python keyword arguments, whose values are literals."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from guided_grammar.budget import Budget
from guided_grammar.formats import ToolFormat
from guided_grammar.ir import Expr, Rules, alt, seq, text
from guided_grammar.limits import Limits
from guided_grammar.schema.emit import Emitter
from guided_grammar.schema.formula import Formula
from guided_grammar.schema.strings import Strings
from guided_grammar.schema.values import Values
from guided_grammar.tool_styles.arguments import Style, emitter_of, written
from guided_grammar.tool_styles.raw import verbatim

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")


def arguments(row: ToolFormat, schema: dict[str, Any], rules: Rules, budget: Budget, limits: Limits) -> Expr:
    """`key=literal, ...`. JSON texts are literals but for three words: every escape of JSON means the same here."""
    emitter = emitter_of(schema, rules, budget, _PythonEmitter)

    def named(key: str, formula: Formula) -> Expr | None:
        return seq(text(f"{key}="), emitter.run(formula)) if _NAME.fullmatch(key) else None

    def extra(keys: Strings, formula: Formula) -> Expr:
        return seq(verbatim(keys, emitter), text("="), emitter.run(formula))

    return written(emitter, Style(named, extra, text(", ")), row.is_sorted)


class _PythonEmitter(Emitter):
    def _body(self, values: Values) -> Expr:
        words = [text("None")] if values.null else []
        words += [text("True" if value else "False") for value in sorted(values.booleans)]
        return alt(*words, super()._body(replace(values, null=False, booleans=frozenset())))
