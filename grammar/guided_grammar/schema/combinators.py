"""The keywords that combine schemas: boolean operations on what those allow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from guided_grammar.errors import InvalidConstraint
from guided_grammar.schema import arrays, objects, values
from guided_grammar.schema.array_keywords import unevaluated_items
from guided_grammar.schema.arrays import ArrayPart
from guided_grammar.schema.document import Node
from guided_grammar.schema.formula import FALSE
from guided_grammar.schema.object_keywords import strings, unevaluated_properties
from guided_grammar.schema.objects import ObjectPart
from guided_grammar.schema.reading import applies
from guided_grammar.schema.values import Values

if TYPE_CHECKING:
    from guided_grammar.schema.expand import Expander


def _listed(node: Node, keyword: str) -> list[Any]:
    listed = node.schema[keyword]
    if not isinstance(listed, list) or not listed:
        raise InvalidConstraint("must be a non-empty array of schemas", keyword=keyword, path=node.path)
    return listed


def _branches(expander: Expander, node: Node, keyword: str) -> list[Values]:
    listed = _listed(node, keyword)
    return [expander.in_place(node, (keyword, str(i)), item) for i, item in enumerate(listed)]


def reference(expander: Expander, node: Node, given: Values, keyword: str) -> Values:
    return values.conjoin(given, expander.reference(node, keyword), expander.budget)


def all_of(expander: Expander, node: Node, result: Values) -> Values:
    for i, branch in enumerate(_listed(node, "allOf")):
        result = expander.narrow(node, ("allOf", str(i)), branch, result)
    return result


def any_of(expander: Expander, node: Node, given: Values) -> Values:
    """At least one. Where marks matter, also every conjunction of branches: each branch that holds marks its own."""
    result = values.NONE
    for branch in _branches(expander, node, "anyOf"):
        together = values.NONE
        if expander.document.has_marks:
            together = expander.feasible(values.conjoin(result, branch, expander.budget), 1)
        one = expander.feasible(values.conjoin(given, branch, expander.budget), 1)
        result = values.unite(result, values.unite(one, together, expander.budget), expander.budget)
    return result


def one_of(expander: Expander, node: Node, given: Values) -> Values:
    """Exactly one: each branch without those of the others that it overlaps."""
    whole = _branches(expander, node, "oneOf")
    branches = [expander.feasible(values.conjoin(given, branch, expander.budget), 1) for branch in whole]
    result = values.NONE
    for i, branch in enumerate(branches):
        for j, other in enumerate(whole):
            if i != j and not branch.is_plainly_empty and not _disjoint(expander, branch, branches[j]):
                branch = expander.without(branch, other)
        result = values.unite(result, branch, expander.budget)
    return result


def _disjoint(expander: Expander, a: Values, b: Values) -> bool:
    """Sure to share no value; False may also mean unsure."""
    return expander.feasible(values.conjoin(a, b, expander.budget), 2).is_plainly_empty


def none_of(expander: Expander, node: Node, given: Values) -> Values:
    inner = expander.in_place(node, ("not",), node.schema["not"])
    return expander.without(given, inner)


def if_then_else(expander: Expander, node: Node, given: Values) -> Values:
    condition = expander.in_place(node, ("if",), node.schema["if"])
    yes = expander.in_place(node, ("then",), node.schema.get("then", True))
    no = expander.in_place(node, ("else",), node.schema.get("else", True))
    if yes is values.ALL and no is values.ALL and not expander.document.has_marks:
        return given
    held = expander.feasible(values.conjoin(given, condition, expander.budget), 1)
    failed = expander.without(given, condition)
    return values.unite(
        values.conjoin(held, yes, expander.budget), values.conjoin(failed, no, expander.budget), expander.budget
    )


def _when_present(expander: Expander, key: str, given: Values, then: Values) -> Values:
    """Objects without `key`, objects with it that are in `then`, and everything that is no object."""
    absent = replace(values.ALL, objects=(ObjectPart(((key, FALSE),)),))
    present = replace(values.NONE, objects=(ObjectPart(required=frozenset({key}), low=1),))
    held = values.conjoin(values.conjoin(given, present, expander.budget), then, expander.budget)
    return values.unite(values.conjoin(given, absent, expander.budget), held, expander.budget)


def dependencies(expander: Expander, node: Node, result: Values) -> Values:
    """`dependencies`, `dependentRequired` and `dependentSchemas`, whichever the schema states."""
    for keyword in ("dependencies", "dependentRequired", "dependentSchemas"):
        if not applies(node, keyword):
            continue
        stated = node.schema[keyword]
        if not isinstance(stated, dict):
            raise InvalidConstraint("must be an object", keyword=keyword, path=node.path)
        for key, value in stated.items():
            then = _dependent(expander, node, keyword, key, value)
            if then is not values.ALL:
                result = _when_present(expander, key, result, then)
    return result


def _dependent(expander: Expander, node: Node, keyword: str, key: str, value: Any) -> Values:
    if keyword == "dependentSchemas" or not isinstance(value, list):
        return expander.in_place(node, (keyword, key), value)
    needed = frozenset(strings(value, keyword, node.child(keyword, key)))
    if not needed:
        return values.ALL
    return replace(values.ALL, objects=(ObjectPart(required=needed, low=len(needed)),))


def unevaluated(expander: Expander, node: Node, result: Values) -> Values:
    """`result` with `unevaluatedItems` and `unevaluatedProperties` of the same schema applied to what is left."""
    budget = expander.budget
    if applies(node, "unevaluatedItems"):
        lists = ((part, unevaluated_items(expander, node, part)) for part in result.arrays)
        kept_lists: list[ArrayPart | None] = [arrays.conjoin(part, limit, budget) for part, limit in lists]
        result = replace(result, arrays=tuple(part for part in kept_lists if part is not None))
    if applies(node, "unevaluatedProperties"):
        maps = ((part, unevaluated_properties(expander, node, part)) for part in result.objects)
        kept_maps: list[ObjectPart | None] = [objects.conjoin(part, limit, budget) for part, limit in maps]
        result = replace(result, objects=tuple(part for part in kept_maps if part is not None))
    return result


Handler = Callable[["Expander", Node, Values], Values]
FIRST: dict[str, Handler] = {
    "allOf": all_of,
    "$ref": partial(reference, keyword="$ref"),
    "$dynamicRef": partial(reference, keyword="$dynamicRef"),
    "$recursiveRef": partial(reference, keyword="$recursiveRef"),
}
"""Keywords that narrow: taken in the order in which the schema states them, with the assertions."""

THEN: dict[str, Handler] = {
    "anyOf": any_of,
    "oneOf": one_of,
    "not": none_of,
    "if": if_then_else,
    "dependencies": dependencies,
    "dependentRequired": dependencies,
    "dependentSchemas": dependencies,
}
"""Keywords that split: each works on what the others have left."""
