"""Schema nodes -> sets of values, one level at a time: children stay formulas until somebody needs them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from guided_grammar.budget import Budget
from guided_grammar.errors import GrammarError, InvalidConstraint, UnsupportedConstraint
from guided_grammar.schema import arrays, combinators, keywords, objects, values
from guided_grammar.schema.dialect import Draft
from guided_grammar.schema.document import Document, Node
from guided_grammar.schema.formula import FALSE, TRUE, Formula, either, literal
from guided_grammar.schema.merge import merged
from guided_grammar.schema.reading import applies
from guided_grammar.schema.values import ALL, Values

_MAX_NESTING = 4
_COSTLY = (
    *(
        "pattern",
        "format",
        "maxLength",
        "minLength",
        "multipleOf",
        "enum",
        "const",
        "oneOf",
        "anyOf",
        "allOf",
        "not",
        "if",
    ),
    *("uniqueItems", "contains", "maxItems", "minItems", "prefixItems", "items"),
    *("minProperties", "maxProperties", "patternProperties", "propertyNames", "properties", "additionalProperties"),
)
"""The keywords whose grammar may be large, the likeliest first: what a refusal by size names."""


class _Endless(InvalidConstraint):
    """A schema whose meaning depends on itself; inside `possible` it is only unfinished."""


class Expander:
    """Owns the atoms of one document and remembers what each formula stands for."""

    def __init__(self, document: Document, budget: Budget) -> None:
        self.document, self.budget = document, budget
        self._nodes: list[Node] = [document.root]
        self._by_content: dict[tuple[Any, ...], int] = {}
        self._by_place: dict[tuple[Any, ...], Formula] = {}
        self._atoms: dict[int, Values] = {}
        self._formulas: dict[Formula, Values] = {TRUE: values.ALL, FALSE: values.NONE}
        self._open: set[int] = set()
        self._nesting = 0

    def root(self) -> Formula:
        root = self.document.root
        return self._formula(self.document.scoped(root, root))

    def child(self, parent: Node, steps: tuple[str, ...], schema: Any) -> Formula:
        """The formula of a subschema at `steps` below `parent`."""
        if isinstance(schema, bool):
            return TRUE if schema else FALSE
        return self._formula(self.document.at(parent, steps, schema))

    def constant(self, value: Any, path: str) -> Formula:
        """The formula of exactly one JSON value."""
        return self._formula(Node({"const": value}, path, "", Draft.D2020))

    def _formula(self, node: Node) -> Formula:
        schema = node.schema
        if isinstance(schema, bool):
            return TRUE if schema else FALSE
        if not isinstance(schema, dict):
            raise InvalidConstraint("a schema must be an object or a boolean", keyword="schema", path=node.path)
        if not schema:
            return TRUE
        place = (node.path, node.base, node.scope, "const" in schema and len(schema) == 1)
        found = self._by_place.get(place)
        if found is None or place[3]:
            text = json.dumps(node.schema, ensure_ascii=False)
            content = (text, node.base, node.draft, node.scope)
            atom = self._by_content.setdefault(content, len(self._nodes))
            if atom == len(self._nodes):
                self._nodes.append(node)
            found = self._by_place[place] = literal(atom)
        return found

    def either(self, a: Formula, b: Formula) -> Formula:
        return either(a, b, self.budget)

    def values(self, formula: Formula) -> Values:
        """The set that `formula` stands for; children unexpanded."""
        found = self._formulas.get(formula)
        if found is None:
            with self.budget.places.at(*self._spot(formula)):
                found = values.NONE
                for clause in sorted(formula, key=sorted):
                    found = values.unite(found, self._clause(clause), self.budget)
                self._formulas[formula] = values.forget(found, self.budget)
                found = self._formulas[formula] = self.feasible(values.forget(found, self.budget))
        return found

    def _clause(self, clause: frozenset[int]) -> Values:
        result = values.ALL
        for atom in sorted(clause, key=lambda atom: (atom < 0, abs(atom))):
            part = self._atom(abs(atom))
            result = values.conjoin(result, part, self.budget) if atom > 0 else self.without(result, part)
        return result

    def _atom(self, atom: int) -> Values:
        found = self._atoms.get(atom)
        if found is None:
            node = self._nodes[atom]
            if atom in self._open:
                raise _Endless("refers to itself without end", keyword="$ref", path=node.path)
            self._open.add(atom)
            try:
                found = self._atoms[atom] = self.feasible(self._node(node))
            finally:
                self._open.discard(atom)
        return found

    @contextmanager
    def place(self, formula: Formula) -> Iterator[None]:
        """What is done inside is done for `formula`; an error that names a keyword only is placed there."""
        keyword, path = self._spot(formula)
        try:
            with self.budget.places.at(keyword, path):
                yield
        except GrammarError as error:
            if error.keyword and not error.path:
                error.path = path
                error.args = (error.message,)
            raise

    def _spot(self, formula: Formula) -> tuple[str, str]:
        """The keyword and the path that stand for a formula."""
        node = self._nodes[min((abs(atom) for clause in formula for atom in clause), default=0)]
        stated = node.schema if isinstance(node.schema, dict) else {}
        return next((keyword for keyword in _COSTLY if keyword in stated), "schema"), node.path

    def in_place(self, parent: Node, steps: tuple[str, ...], schema: Any) -> Values:
        """The values of a subschema that judges the same instance, marks for `unevaluated*` included."""
        return self._marked(self.child(parent, steps, schema))

    def _marked(self, formula: Formula) -> Values:
        if formula in (TRUE, FALSE):
            return self._formulas[formula]
        ((atom,),) = formula
        return self._atom(atom)

    def narrow(self, parent: Node, steps: tuple[str, ...], schema: Any, given: Values) -> Values:
        """`given` and a subschema of the same instance. One that splits works on `given`, which leaves fewer parts."""
        formula = self.child(parent, steps, schema)
        if formula not in (TRUE, FALSE) and not self.document.has_marks:
            ((atom,),) = formula
            node = self._nodes[atom]
            if atom not in self._open and combinators.THEN.keys() & node.schema.keys():
                self._open.add(atom)
                try:
                    return self.feasible(self._node(node, given))
                finally:
                    self._open.discard(atom)
        return self.feasible(values.conjoin(given, self._marked(formula), self.budget))

    def _node(self, node: Node, given: Values = ALL) -> Values:
        with self.budget.places.at("schema", node.path):
            self.budget.spend(10)
            return self._narrowed(node, given)

    def _narrowed(self, node: Node, given: Values) -> Values:
        schema = node.schema
        if node.draft is Draft.D3:
            raise UnsupportedConstraint("draft 3 is not supported", keyword="$schema", path=node.path)
        if node.draft <= Draft.D7 and "$ref" in schema:
            return values.conjoin(given, self.reference(node, "$ref"), self.budget)
        result = values.conjoin(given, keywords.scalars(self, node), self.budget)
        for handlers in ({**keywords.HANDLERS, **combinators.FIRST}, combinators.THEN):
            result = self._apply(node, handlers, result)
        return combinators.unevaluated(self, node, result)

    def _apply(self, node: Node, handlers: Mapping[str, keywords.Handler], result: Values) -> Values:
        """`result` narrowed by the keywords that `handlers` knows, in the order in which the schema states them."""
        done: set[keywords.Handler] = set()
        for keyword in node.schema:
            handler = handlers.get(keyword)
            if handler is not None and handler not in done and applies(node, keyword):
                done.add(handler)
                with self.budget.places.at(keyword, node.path):
                    result = handler(self, node, result)
        return result

    def reference(self, node: Node, keyword: str) -> Values:
        """The values of what `$ref` or one of its kin refers to."""
        return self._marked(self._formula(self.document.resolve(node, keyword)))

    def without(self, a: Values, b: Values) -> Values:
        """The values of `a` outside of `b`, one part of `b` after the other, dropping what became impossible."""
        for lists, maps in [((part,), ()) for part in b.arrays] + [((), (part,)) for part in b.objects]:
            if a.arrays if lists else a.objects:
                part = replace(values.NONE, arrays=lists, objects=maps)
                a = self.feasible(values.subtract(a, part, self.budget), 1)
        return values.subtract(a, replace(b, arrays=(), objects=()), self.budget)

    def possible(self, formula: Formula, depth: int = 1) -> bool:
        """False only when nothing satisfies `formula`; looks `depth` levels down, and never into unfinished nodes."""
        if formula == FALSE:
            return False
        if formula not in self._formulas and any(abs(a) in self._open for clause in formula for a in clause):
            return True
        try:
            found = self.values(formula)
        except _Endless:
            return True
        if depth > 0 and not (found.null or found.booleans):
            found = self.feasible(found, depth - 1)
        return not found.is_plainly_empty

    def feasible(self, found: Values, depth: int = 0) -> Values:
        """Without the array and object parts that need an impossible child. Gives up where it would have to look far:
        what it leaves in is found to be empty when the grammar is written."""
        if self._nesting >= _MAX_NESTING or not (found.arrays or found.objects):
            return found
        self._nesting += 1
        try:
            kept = [part for part in found.arrays if self._array(part, depth)]
            maps = [self._object(part, depth) for part in found.objects]
        finally:
            self._nesting -= 1
        lists = found.arrays if len(kept) == len(found.arrays) else tuple(kept)
        left = tuple(part for part in maps if part is not None)
        if left != found.objects:
            left = merged(left, self.budget)
        return replace(found, arrays=lists, objects=left)

    def _array(self, part: arrays.ArrayPart, depth: int) -> bool:
        needed = range(min(part.low, len(part.prefix) + 1))
        return all(self.possible(part.item(i), depth) for i in needed)

    def _object(self, part: objects.ObjectPart, depth: int) -> objects.ObjectPart | None:
        """The part with impossible properties marked as such; None where a required one is impossible."""
        if not all(self.possible(part.value(key), depth) for key in sorted(part.required)):
            return None
        barred = {key for key, formula in part.props if _is_joint(formula) and not self.possible(formula, 0)}
        if not barred:
            return part
        props = tuple((key, FALSE if key in barred else formula) for key, formula in part.props)
        return objects.clean(replace(part, props=props))


def _is_joint(formula: Formula) -> bool:
    """Every clause is a conjunction, so that the formula may be impossible though no node of it is."""
    return bool(formula) and all(len(clause) > 1 for clause in formula)
