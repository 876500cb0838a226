"""The keywords of objects, read into `ObjectPart`s."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from guided_grammar.errors import InvalidConstraint
from guided_grammar.schema.document import Node
from guided_grammar.schema.formula import FALSE, TRUE
from guided_grammar.schema.objects import ObjectPart, SeenKeys, clean, conjoin
from guided_grammar.schema.reading import applies, count
from guided_grammar.schema.strings import Strings

if TYPE_CHECKING:
    from guided_grammar.schema.expand import Expander

OBJECT_KEYWORDS = (
    *("properties", "patternProperties", "additionalProperties", "propertyNames"),
    *("required", "minProperties", "maxProperties"),
)


def object_part(expander: Expander, node: Node) -> tuple[ObjectPart, ...]:
    """The objects that the object keywords of `node` allow, `dependent*` apart."""
    part: ObjectPart | None = _named(expander, node)
    for keyword, value in _map(node, "patternProperties").items():
        part = part and conjoin(part, _pattern(expander, node, keyword, value), expander.budget)
    if applies(node, "additionalProperties"):
        part = part and conjoin(part, _additional(expander, node), expander.budget)
    if applies(node, "propertyNames"):
        part = part and conjoin(part, _names(expander, node), expander.budget)
    return () if part is None else (part,)


def _named(expander: Expander, node: Node) -> ObjectPart | None:
    declared = _map(node, "properties")
    props = tuple((key, expander.child(node, ("properties", key), value)) for key, value in declared.items())
    required = strings(node.schema.get("required", []), "required", node.path)
    seen = SeenKeys(frozenset(declared)) if expander.document.has_marks else SeenKeys()
    low, high = count(node, "minProperties", 0) or 0, count(node, "maxProperties")
    return clean(ObjectPart(props, frozenset(required), low=low, high=high, seen=seen))


def _map(node: Node, keyword: str) -> dict[str, Any]:
    value = node.schema[keyword] if applies(node, keyword) else {}
    if not isinstance(value, dict):
        raise InvalidConstraint("must be an object", keyword=keyword, path=node.path)
    return value


def strings(value: Any, keyword: str, path: str) -> list[str]:
    """A list of strings, as `required` holds it."""
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InvalidConstraint("must be an array of strings", keyword=keyword, path=path)
    return value


def _key_pattern(expander: Expander, node: Node, pattern: str) -> Strings:
    return Strings.pattern(pattern, expander.budget, node.child("patternProperties", pattern))


def _pattern(expander: Expander, node: Node, pattern: str, schema: Any) -> ObjectPart:
    names = _key_pattern(expander, node, pattern)
    seen = SeenKeys(classes=(names,)) if expander.document.has_marks else SeenKeys()
    formula = expander.child(node, ("patternProperties", pattern), schema)
    return ObjectPart(classes=((names, formula),), seen=seen)


def _additional(expander: Expander, node: Node) -> ObjectPart:
    """`additionalProperties`: names neither in `properties` nor matching a pattern."""
    formula = expander.child(node, ("additionalProperties",), node.schema["additionalProperties"])
    spared = tuple((key, TRUE) for key in _map(node, "properties"))
    patterns = _map(node, "patternProperties")
    classes = tuple((_key_pattern(expander, node, pattern), TRUE) for pattern in patterns)
    seen = SeenKeys(everything=expander.document.has_marks)
    return ObjectPart(spared, classes=classes, default=formula, seen=seen)


def _names(expander: Expander, node: Node) -> ObjectPart:
    formula = expander.child(node, ("propertyNames",), node.schema["propertyNames"])
    allowed = expander.values(formula).strings
    return ObjectPart(classes=((allowed, TRUE),), default=FALSE)


def unevaluated_properties(expander: Expander, node: Node, part: ObjectPart) -> ObjectPart:
    """What `unevaluatedProperties` of `node` asks of the names that `part` does not mark as seen."""
    done = SeenKeys(everything=True)
    if part.seen.everything:
        return ObjectPart(seen=done)
    formula = expander.child(node, ("unevaluatedProperties",), node.schema["unevaluatedProperties"])
    spared = tuple((key, TRUE) for key in sorted(part.seen.keys))
    return ObjectPart(spared, classes=tuple((names, TRUE) for names in part.seen.classes), default=formula, seen=done)
