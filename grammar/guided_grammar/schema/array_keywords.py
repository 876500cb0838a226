"""The keywords of arrays, read into one `ArrayPart`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from guided_grammar.errors import InvalidConstraint
from guided_grammar.schema.arrays import ArrayPart, Contains, SeenItems, clean
from guided_grammar.schema.dialect import Draft
from guided_grammar.schema.document import Node
from guided_grammar.schema.formula import FALSE, TRUE, Formula
from guided_grammar.schema.reading import applies, count

if TYPE_CHECKING:
    from guided_grammar.schema.expand import Expander

ARRAY_KEYWORDS = (
    *("prefixItems", "items", "additionalItems", "contains", "minContains", "maxContains"),
    *("minItems", "maxItems", "uniqueItems"),
)


def array_part(expander: Expander, node: Node) -> tuple[ArrayPart, ...]:
    """The arrays that the array keywords of `node` allow."""
    prefix, rest, seen = _items(expander, node)
    contains: tuple[Contains, ...] = ()
    matched = FALSE
    if applies(node, "contains"):
        formula = expander.child(node, ("contains",), node.schema["contains"])
        low, high = count(node, "minContains", 1) or 0, count(node, "maxContains")
        contains = (Contains(formula, 0, low, high),)
        matched = formula if node.draft >= Draft.D2020 else FALSE
    unique = node.schema.get("uniqueItems", False)
    if not isinstance(unique, bool):
        raise InvalidConstraint("must be a boolean", keyword="uniqueItems", path=node.path)
    marks = SeenItems(seen, matched) if expander.document.has_marks else SeenItems()
    low, high = count(node, "minItems", 0) or 0, count(node, "maxItems")
    part = clean(ArrayPart(prefix, rest, low, high, contains, unique or None, marks))
    return () if part is None else (part,)


def _items(expander: Expander, node: Node) -> tuple[tuple[Formula, ...], Formula, int | None]:
    """(formulas of the first items, formula of the others, how many are evaluated: None all)."""
    schema = node.schema
    items = schema.get("items", True)
    if isinstance(items, list):
        prefix = _list(expander, node, "items", items)
        rest = expander.child(node, ("additionalItems",), schema.get("additionalItems", True))
        return prefix, rest, None if "additionalItems" in schema else len(prefix)
    listed = schema["prefixItems"] if applies(node, "prefixItems") else []
    prefix = _list(expander, node, "prefixItems", listed)
    rest = expander.child(node, ("items",), items)
    return prefix, rest, None if "items" in schema else len(prefix)


def _list(expander: Expander, node: Node, keyword: str, listed: Any) -> tuple[Formula, ...]:
    if not isinstance(listed, list):
        raise InvalidConstraint("must be an array of schemas", keyword=keyword, path=node.path)
    return tuple(expander.child(node, (keyword, str(i)), item) for i, item in enumerate(listed))


def unevaluated_items(expander: Expander, node: Node, part: ArrayPart) -> ArrayPart:
    """What `unevaluatedItems` of `node` asks of the items that `part` does not mark as seen."""
    if part.seen.count is None:
        return ArrayPart(seen=SeenItems(None))
    formula = expander.child(node, ("unevaluatedItems",), node.schema["unevaluatedItems"])
    rest = expander.either(formula, part.seen.formula)
    return ArrayPart((TRUE,) * part.seen.count, rest, seen=SeenItems(None))
