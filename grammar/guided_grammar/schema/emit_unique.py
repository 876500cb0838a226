"""Arrays of distinct items out of few values -> grammar: one rule for each set of values that are used up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guided_grammar.errors import UnsupportedConstraint
from guided_grammar.ir import EMPTY, Expr, Ref, alt, seq, text
from guided_grammar.schema.arrays import ArrayPart
from guided_grammar.schema.formula import Formula
from guided_grammar.schema.json_text import quoted
from guided_grammar.schema.numbers import Numbers

if TYPE_CHECKING:
    from guided_grammar.schema.emit import Emitter

_MAX_VALUES = 64
_MAX_STATES = 1024
_CLOSE = text("]")


class Distinct:
    """The arrays of a part with `uniqueItems`. The values used up are the state; their number is the position."""

    def __init__(self, emitter: Emitter, part: ArrayPart) -> None:
        if part.contains or not part.unique:
            raise UnsupportedConstraint("cannot be enforced together with `contains` or `not`", keyword="uniqueItems")
        self._emitter, self._part = emitter, part
        self._listed: dict[Formula, dict[str, Expr]] = {}
        self._refs: dict[frozenset[str], Ref] = {}
        self._waiting: list[frozenset[str]] = []

    def run(self) -> Expr:
        """What follows the opening bracket."""
        first = self._visit(frozenset())
        while self._waiting:
            used = self._waiting.pop()
            self._emitter.rules.define(self._refs[used], self._body(used))
        return first

    def _visit(self, used: frozenset[str]) -> Ref:
        found = self._refs.get(used)
        if found is None:
            self._emitter.budget.spend(8, "uniqueItems")
            if len(self._refs) >= _MAX_STATES:
                raise UnsupportedConstraint(
                    f"there are more than {_MAX_STATES} sets of items to tell apart", keyword="uniqueItems"
                )
            found = self._refs[used] = self._emitter.rules.reserve("u")
            self._waiting.append(used)
        return found

    def _body(self, used: frozenset[str]) -> Expr:
        options: list[Expr] = [_CLOSE] if len(used) >= self._part.low else []
        if self._part.high is None or len(used) < self._part.high:
            comma = self._emitter.comma if used else EMPTY
            for key, item in self._values(self._part.item(len(used))).items():
                if key not in used:
                    options.append(seq(comma, item, self._visit(used | {key})))
        return alt(*options)

    def _values(self, formula: Formula) -> dict[str, Expr]:
        """The texts of the values of `formula`, by a name that is the same for equal values."""
        found = self._listed.get(formula)
        if found is None:
            found = self._listed[formula] = self._list(formula)
        return found

    def _list(self, formula: Formula) -> dict[str, Expr]:
        emitter = self._emitter
        values = emitter.expander.values(formula)
        numbers, strings = values.numbers.finite(_MAX_VALUES), values.strings.finite(_MAX_VALUES)
        if numbers is None or strings is None or values.arrays or values.objects:
            raise UnsupportedConstraint(
                "enforced only for items of few scalar values, or for at most one item", keyword="uniqueItems"
            )
        listed: dict[str, Expr] = {"null": text("null")} if values.null else {}
        listed |= {str(value): text("true" if value else "false") for value in sorted(values.booleans)}
        for number in numbers:
            listed[str(number)] = Numbers.of([number]).emit(emitter.rules, emitter.digits, emitter.budget)
        return listed | {f'"{value}': quoted(value) for value in strings}
