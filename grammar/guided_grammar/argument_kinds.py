"""Which texts of an untyped argument are strings: one rule, for the grammar that writes them and the reader.

An argument whose schema allows nothing but strings is its text. One whose schema allows no strings is JSON. Where both
are possible a text is a string unless it looks like JSON of another type.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

OTHER_TYPE = r"^[ \t\n\r]*([-0-9\[{]|(true|false|null|True|False|None)[ \t\n\r]*$)"
"""Texts that look like JSON (or Python) of another type than string."""
_LOOKS_OTHER = re.compile(OTHER_TYPE)
_MAX_DEPTH = 16
_OTHERS = ("null", "boolean", "integer", "number", "array", "object")


@dataclass(frozen=True)
class Kinds:
    """What a schema may allow: never less than it does."""

    strings: bool
    others: bool

    def __or__(self, other: Kinds) -> Kinds:
        return Kinds(self.strings or other.strings, self.others or other.others)

    def __and__(self, other: Kinds) -> Kinds:
        return Kinds(self.strings and other.strings, self.others and other.others)

    def is_string(self, text: str) -> bool:
        """Whether this text of an argument stands for itself."""
        return self.strings and not (self.others and _LOOKS_OTHER.match(text))


ANYTHING = Kinds(True, True)
_NOTHING = Kinds(False, False)


def kinds_of(parameters: Any, argument: str) -> Kinds:
    """The kinds of one argument, told from the words of the tool's schema alone."""
    properties = parameters.get("properties") if isinstance(parameters, dict) else None
    declared = properties.get(argument) if isinstance(properties, dict) else None
    return _kinds(declared, parameters, 0)


def _kinds(schema: Any, root: Any, depth: int) -> Kinds:
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return ANYTHING
    found = ANYTHING
    types = schema.get("type")
    if isinstance(types, (str, list)):
        names = [types] if isinstance(types, str) else types
        found &= Kinds("string" in names, any(name in _OTHERS for name in names))
    values = schema.get("enum") if isinstance(schema.get("enum"), list) else None
    values = [schema["const"]] if "const" in schema else values
    if values is not None:
        found &= Kinds(any(isinstance(v, str) for v in values), any(not isinstance(v, str) for v in values))
    for keyword in ("anyOf", "oneOf"):
        if isinstance(options := schema.get(keyword), list):
            found &= _any(options, root, depth)
    for part in schema["allOf"] if isinstance(schema.get("allOf"), list) else ():
        found &= _kinds(part, root, depth + 1)
    return found & _kinds(_target(schema["$ref"], root), root, depth + 1) if "$ref" in schema else found


def _any(options: list[Any], root: Any, depth: int) -> Kinds:
    found = _NOTHING
    for option in options:
        found |= _kinds(option, root, depth + 1)
    return found


def _target(reference: Any, root: Any) -> Any:
    """The schema at a JSON pointer of this document, None for other references."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    at = root
    for step in reference[2:].split("/"):
        at = at.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(at, dict) else None
    return at
