"""Arguments as Gemma 4 writes them: `key:value,...`, bare names, and strings between marks, without escapes."""

from __future__ import annotations

import re
from typing import Any

from guided_grammar.budget import Budget
from guided_grammar.formats import STRING_MARK, ToolFormat
from guided_grammar.ir import Expr, Rules, alt, seq, text
from guided_grammar.limits import Limits
from guided_grammar.markers import markup
from guided_grammar.schema.emit import Emitter
from guided_grammar.schema.emit_arrays import array
from guided_grammar.schema.formula import Formula
from guided_grammar.schema.strings import Strings
from guided_grammar.schema.values import Values
from guided_grammar.tool_styles.arguments import Style, chain, emitter_of, written
from guided_grammar.tool_styles.raw import verbatim, without

# What ends a name, a value or a list cannot stand in a name; the reader drops blanks around it.
_NAME = re.compile(r"[^\s:,{}\[\]<>\"'][^:,{}\[\]<>\"'\n]*(?<!\s)")


def arguments(row: ToolFormat, schema: dict[str, Any], rules: Rules, budget: Budget, limits: Limits) -> Expr:
    """The argument list between the braces, nested objects written like it."""
    emitter = emitter_of(schema, rules, budget, _GemmaEmitter)
    assert isinstance(emitter, _GemmaEmitter)
    emitter.mark = markup(STRING_MARK, row, rules)
    found = written(emitter, emitter.style, row.is_sorted)
    emitter.finish()
    return found


class _GemmaEmitter(Emitter):
    comma = text(",")
    can_watch = False
    mark: Expr

    @property
    def style(self) -> Style:
        return Style(self._named, self._extra, self.comma)

    def finish(self) -> None:
        """Write the rules of the values that were met."""
        self.run(self.expander.root())

    def _named(self, key: str, formula: Formula) -> Expr | None:
        return seq(text(f"{key}:"), self.value(formula)) if _NAME.fullmatch(key) else None

    def _extra(self, keys: Strings, formula: Formula) -> Expr:
        return seq(verbatim(keys, self), text(":"), self.value(formula))

    def _body(self, values: Values) -> Expr:
        options = [text("null")] if values.null else []
        options += [text("true" if value else "false") for value in sorted(values.booleans)]
        if not values.numbers.is_empty():
            options.append(values.numbers.emit(self.rules, self.digits, self.budget))
        strings = without(values.strings, (STRING_MARK,), self.budget)
        if not strings.is_empty():
            options.append(seq(self.mark, verbatim(strings, self), self.mark))
        options += [array(self, part) for part in values.arrays]
        options += [seq(text("{"), chain(self, self.style, part, True), text("}")) for part in values.objects]
        return alt(*options)
