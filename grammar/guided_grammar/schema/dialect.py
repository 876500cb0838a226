"""The drafts of JSON Schema: which keywords each knows, by what name."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from guided_grammar.errors import InvalidConstraint


class Draft(IntEnum):
    D3 = 3
    D4 = 4
    D6 = 6
    D7 = 7
    D2019 = 2019
    D2020 = 2020


_BY_URI = {
    "json-schema.org/draft-03/schema": Draft.D3,
    "json-schema.org/draft-04/schema": Draft.D4,
    "json-schema.org/draft-06/schema": Draft.D6,
    "json-schema.org/draft-07/schema": Draft.D7,
    "json-schema.org/schema": Draft.D2020,
    "json-schema.org/draft/2019-09/schema": Draft.D2019,
    "json-schema.org/draft/2020-12/schema": Draft.D2020,
}

_SINCE = {
    "const": Draft.D6,
    "contains": Draft.D6,
    "propertyNames": Draft.D6,
    "if": Draft.D7,
    "minContains": Draft.D2019,
    "maxContains": Draft.D2019,
    "dependentRequired": Draft.D2019,
    "dependentSchemas": Draft.D2019,
    "unevaluatedItems": Draft.D2019,
    "unevaluatedProperties": Draft.D2019,
    "$anchor": Draft.D2019,
    "$recursiveRef": Draft.D2019,
    "$recursiveAnchor": Draft.D2019,
    "prefixItems": Draft.D2020,
    "$dynamicRef": Draft.D2020,
    "$dynamicAnchor": Draft.D2020,
}
_UNTIL = {"$recursiveRef": Draft.D2019, "$recursiveAnchor": Draft.D2019}

_ONE = (
    *("additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not"),
    *("propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
)
_LISTS = ("allOf", "anyOf", "items", "oneOf", "prefixItems")
_MAPS = ("$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties")


def draft_of(uri: Any, path: str) -> Draft | None:
    """The draft that a `$schema` value names; None for a meta-schema of the client's own. Raises for a wrong type."""
    if not isinstance(uri, str):
        raise InvalidConstraint("must be a string", keyword="$schema", path=path)
    name = uri.partition("://")[2] or uri
    return _BY_URI.get(name.rstrip("#").rstrip("/"))


def known(keyword: str, draft: Draft) -> bool:
    """Whether `keyword` is more than an annotation in `draft`."""
    return _SINCE.get(keyword, Draft.D3) <= draft <= _UNTIL.get(keyword, Draft.D2020)


def subschemas(schema: dict[str, Any]) -> list[tuple[tuple[str, ...], Any]]:
    """(path, schema) of every place under `schema` where a keyword of any draft holds a schema."""
    found: list[tuple[tuple[str, ...], Any]] = []
    for keyword, value in schema.items():
        if keyword in _ONE and isinstance(value, (dict, bool)):
            found.append(((keyword,), value))
        elif keyword in _LISTS and isinstance(value, list):
            found += [((keyword, str(i)), item) for i, item in enumerate(value)]
        elif keyword in _MAPS and isinstance(value, dict):
            found += [((keyword, name), item) for name, item in value.items() if isinstance(item, (dict, bool))]
    return found
