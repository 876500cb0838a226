"""Formulas -> grammar rules: one rule for each formula that is reached."""

from __future__ import annotations

from guided_grammar.ir import NOTHING, Expr, Ref, Rules, alt, text
from guided_grammar.schema.emit_arrays import array
from guided_grammar.schema.emit_keys import KeyWriter
from guided_grammar.schema.emit_objects import objects
from guided_grammar.schema.emit_unique import compares_objects
from guided_grammar.schema.expand import Expander
from guided_grammar.schema.formula import FALSE, Formula
from guided_grammar.schema.room import Room
from guided_grammar.schema.values import Values
from guided_grammar.watch.marks import Watch, mark


class Emitter:
    """Writes JSON texts: keys in declared (or sorted) order, then others; separators ", " and ": ", no other blanks.

    comma: what parts the items of an array; notations close to JSON have their own.
    can_watch: containers are written as in JSON, so that a session can tell their items apart.
    tells_keys: no name is written twice in one object, declared or not. Items that are objects can then be compared.
    """

    comma: Expr = text(", ")
    can_watch = True

    def __init__(self, expander: Expander, rules: Rules, is_sorted: bool) -> None:
        self.expander, self.rules, self.is_sorted = expander, rules, is_sorted
        self.budget = expander.budget
        self.keys = KeyWriter(rules, self.budget)
        self.digits = self.budget.limits.number_digits
        self._refs: dict[Formula, Expr] = {}
        self._waiting: list[tuple[Ref, Formula]] = []
        self._marks: dict[Watch, Ref] = {}
        self._num_sites = 0
        self.room = Room(expander)
        self.tells_keys = self.can_watch and compares_objects(expander.document.root.schema)

    def watch(self, kind: Watch) -> Ref:
        """The mark behind the bracket that opens a watched container. Where beginnings of its items are looked into,
        a mark of its own: what may follow them in another container is no measure."""
        if kind & (Watch.CHECK | Watch.SEARCH) == Watch.CHECK:
            self._num_sites += 1
            return mark(self.rules, kind, self._num_sites)
        if kind not in self._marks:
            self._marks[kind] = mark(self.rules, kind, 0)
        return self._marks[kind]

    def run(self, root: Formula) -> Expr:
        """The texts of `root`; its rules are complete when this returns."""
        expr = self.value(root)
        while self._waiting:
            ref, formula = self._waiting.pop()
            with self.expander.place(formula):
                self.rules.define(ref, self._body(self.expander.values(formula)))
        return expr

    def value(self, formula: Formula) -> Expr:
        """The texts of the values of `formula`, as a rule that is written later where it has structure."""
        found = self._refs.get(formula)
        if found is None:
            self.budget.spend(10)
            with self.expander.place(formula):
                found = self._refs[formula] = self._start(formula)
        return found

    def _start(self, formula: Formula) -> Expr:
        if formula == FALSE or not self.expander.possible(formula):
            return NOTHING
        values = self.expander.values(formula)
        if not values.arrays and not values.objects:
            return self.rules.add(self._body(values), "v")
        ref = self.rules.reserve("v")
        self._waiting.append((ref, formula))
        return ref

    def _body(self, values: Values) -> Expr:
        options = [text("null")] if values.null else []
        options += [text("true" if value else "false") for value in sorted(values.booleans)]
        if not values.numbers.is_empty():
            options.append(values.numbers.emit(self.rules, self.digits, self.budget))
        if not values.strings.is_empty():
            options.append(values.strings.emit(self.rules, self.budget))
        options += [array(self, part) for part in values.arrays]
        options += [objects(self, part) for part in values.objects]
        return alt(*options)
