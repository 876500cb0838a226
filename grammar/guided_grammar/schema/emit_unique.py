"""Arrays of distinct items -> grammar: of few values one rule for each set of values that are used up, of more a mark
by which the session watches the items (`watch`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from guided_grammar.errors import UnsupportedConstraint
from guided_grammar.ir import EMPTY, NOTHING, Expr, Ref, alt, seq, text
from guided_grammar.schema.arrays import ArrayPart, Contains
from guided_grammar.schema.formula import FALSE, Formula, both, negate
from guided_grammar.schema.json_text import quoted
from guided_grammar.schema.numbers import Numbers
from guided_grammar.watch.marks import Watch

if TYPE_CHECKING:
    from guided_grammar.schema.emit import Emitter

_FEW = 6
_MAX_VALUES = 64
_MAX_STATES = 1024
_CLOSE = text("]")


def distinct(emitter: Emitter, part: ArrayPart, write: Callable[[Emitter, ArrayPart], Expr]) -> Expr:
    """What follows the opening bracket of the arrays of a part with `uniqueItems`. write: the same without it.

    Raises UnsupportedConstraint where an answer could be led to an item for which no value is left.
    """
    formulas = {part.item(i) for i in range(len(part.prefix) + 1)}
    if not all(any(_occurs(emitter, formula, c) for formula in formulas) for c in part.contains):
        return NOTHING
    watch = _watch(emitter, part)
    if watch is not None and any(emitter.room.has(formula, _FEW) for formula in formulas):
        return seq(emitter.watch(watch), write(emitter, replace(part, unique=None)))
    try:
        return _Distinct(emitter, part).run()
    except UnsupportedConstraint:
        if watch is None and part.unique and not part.contains and emitter.can_watch:
            raise UnsupportedConstraint("not sure to leave a value for each item", keyword="uniqueItems") from None
        if watch is None:
            raise
    return seq(emitter.watch(watch), write(emitter, replace(part, unique=None)))


def _occurs(emitter: Emitter, formula: Formula, wanted: Contains) -> bool:
    """Whether an item of `formula` can be what a `contains` asks for, if it asks for any."""
    return not wanted.low or emitter.expander.possible(both(formula, wanted.formula, emitter.budget))


def _watch(emitter: Emitter, part: ArrayPart) -> Watch | None:
    """How to watch the arrays of `part`; None where a value may be missing for an item that must be there."""
    room, fixed = emitter.room, len(part.prefix)
    enough = all(room.has(part.item(i), i + 1) for i in range(min(part.low, fixed)))
    if part.low > fixed:
        enough = enough and room.has(part.rest, part.low)
    if not emitter.can_watch or not part.unique or not enough or not _has_matches(emitter, part):
        return None
    kinds = [room.watch(formula) for formula in (*part.prefix, part.rest) if formula != FALSE]
    found = reduce(or_, (kind & (Watch.CHECK | Watch.VALUE | Watch.SEARCH) for kind in kinds), Watch.ITEMS)
    if part.contains or fixed:
        found |= Watch.CHECK | Watch.SEARCH
    if all(Watch.ENDLESS in kind for kind in kinds) and not part.contains:
        found |= Watch.ENDLESS
    return found | Watch.GROWS if all(Watch.GROWS in kind for kind in kinds) and not found & Watch.SEARCH else found


def _has_matches(emitter: Emitter, part: ArrayPart) -> bool:
    """Whether different items can be found for what `contains` asks."""
    if not part.contains:
        return True
    (counted, *more), room, budget = part.contains, emitter.room, emitter.budget
    if more or part.prefix or counted.start:
        return False
    others = both(part.rest, negate(counted.formula, budget), budget)
    few = counted.high is not None and not room.has(others, part.low - counted.high)
    return room.has(both(part.rest, counted.formula, budget), counted.low) and not few


class _Distinct:
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
                "enforced here only for items of few scalar values, or for at most one item", keyword="uniqueItems"
            )
        listed: dict[str, Expr] = {"null": text("null")} if values.null else {}
        listed |= {str(value): text("true" if value else "false") for value in sorted(values.booleans)}
        for number in numbers:
            listed[str(number)] = Numbers.of([number]).emit(emitter.rules, emitter.digits, emitter.budget)
        return listed | {f'"{value}': quoted(value) for value in strings}


def compares_objects(schema: Any) -> bool:
    """Whether `uniqueItems` stands anywhere over items that are not plainly scalars."""
    stack = [schema]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            if value.get("uniqueItems") is True and not _is_scalar(value.get("items")):
                return True
            stack.extend(value.values())
        elif isinstance(value, list):
            stack.extend(value)
    return False


def _is_scalar(items: Any) -> bool:
    if not isinstance(items, dict):
        return False
    types = items.get("type")
    listed = types if isinstance(types, list) else [types]
    return "const" in items or "enum" in items or not {None, "array", "object"} & set(map(_text, listed))


def _text(name: Any) -> str | None:
    return name if isinstance(name, str) else None
