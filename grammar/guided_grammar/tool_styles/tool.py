"""One function that may be called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from guided_grammar.errors import InvalidConstraint, UnsatisfiableConstraint

ANY_OBJECT = {"type": "object"}


@dataclass(frozen=True)
class Tool:
    """One function that may be called. `path` is its JSON pointer in the list of tools."""

    name: str
    parameters: Any
    path: str


def of_objects(parameters: Any) -> dict[str, Any]:
    """The schema with `type` object, as a sibling: wrapping it would move the root that its `$ref`s start from."""
    if parameters is True:
        return ANY_OBJECT
    if not isinstance(parameters, dict):
        raise InvalidConstraint("must be a schema of objects", keyword="parameters")
    types = parameters.get("type", "object")
    if types != "object" and not (isinstance(types, list) and "object" in types):
        raise UnsatisfiableConstraint(f"arguments are objects, the schema wants {types!r}", keyword="type")
    return {**parameters, "type": "object"}
