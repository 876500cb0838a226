"""Arguments as marked-up texts: strings as they are, other values as JSON."""

from __future__ import annotations

from typing import Any

from guided_grammar.argument_kinds import OTHER_TYPE, Kinds, kinds_of
from guided_grammar.budget import Budget
from guided_grammar.formats import ToolFormat
from guided_grammar.ir import NOTHING, Expr, Rules, alt, seq, text
from guided_grammar.limits import Limits
from guided_grammar.markers import markup
from guided_grammar.regex import search_language
from guided_grammar.schema.emit import Emitter
from guided_grammar.schema.formula import Formula, both
from guided_grammar.schema.strings import Strings
from guided_grammar.tool_styles.arguments import Style, emitter_of, written
from guided_grammar.tool_styles.raw import of_language, verbatim, without

_NO_STRING = {"type": ["null", "boolean", "number", "array", "object"]}


def arguments(row: ToolFormat, schema: dict[str, Any], rules: Rules, budget: Budget, limits: Limits) -> Expr:
    """`argument_open KEY after_key VALUE argument_close` for each argument."""
    emitter = emitter_of(schema, rules, budget)
    writer = _Writer(row, schema, emitter)
    return written(emitter, Style(writer.named, writer.extra), row.is_sorted)


class _Writer:
    def __init__(self, row: ToolFormat, schema: dict[str, Any], emitter: Emitter) -> None:
        self._row, self._schema, self._emitter = row, schema, emitter
        expander = emitter.expander
        self._no_string = expander.child(expander.document.root, ("no_string",), _NO_STRING)

    def named(self, key: str, formula: Formula) -> Expr | None:
        stop = self._row.after_key.strip()[0]
        if not key or key != key.strip() or stop in key or not key.isprintable():
            return None
        return self._argument(text(key), self._value(formula, kinds_of(self._schema, key)))

    def extra(self, keys: Strings, formula: Formula) -> Expr:
        return self._argument(verbatim(keys, self._emitter), self._value(formula, kinds_of(self._schema, "")))

    def _argument(self, key: Expr, value: Expr) -> Expr:
        row, rules = self._row, self._emitter.rules
        parts = (markup(row.argument_open, row, rules), key, markup(row.after_key, row, rules), value)
        return seq(*parts, markup(row.argument_close, row, rules)) if value != NOTHING else NOTHING

    def _value(self, formula: Formula, kinds: Kinds) -> Expr:
        """The texts that the reader takes for the values of `formula`."""
        emitter, budget = self._emitter, self._emitter.budget
        values = emitter.expander.values(formula)
        options = [text("True" if value else "False") for value in sorted(values.booleans)] if kinds.others else []
        if kinds.others:
            options.append(emitter.run(both(formula, self._no_string, budget)))
        if kinds.strings and not values.strings.is_empty():
            options.append(self._strings(values.strings, kinds))
        return emitter.rules.add(alt(*options), "value") if alt(*options) != NOTHING else NOTHING

    def _strings(self, strings: Strings, kinds: Kinds) -> Expr:
        """Texts that neither end early nor look like another type."""
        budget, marks = self._emitter.budget, (self._row.argument_close.strip(), self._row.argument_open)
        if kinds.others:
            strings = strings.intersect(of_language(search_language(OTHER_TYPE, budget).complement(budget)), budget)
        return verbatim(without(strings, marks, budget), self._emitter)
