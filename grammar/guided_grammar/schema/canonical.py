"""The one spelling in which a grammar of `compile_schema` accepts a value, and membership without a grammar."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from guided_grammar.budget import Budget
from guided_grammar.limits import DEFAULT_LIMITS, Limits
from guided_grammar.schema.arrays import ArrayPart
from guided_grammar.schema.document import Document
from guided_grammar.schema.expand import Expander
from guided_grammar.schema.formula import Formula
from guided_grammar.schema.objects import ObjectPart
from guided_grammar.schema.settle import spell_out


class Canonical:
    """Puts values into the spelling that the grammar of `schema` writes. Raises what `compile_schema` raises."""

    def __init__(self, schema: Any, limits: Limits = DEFAULT_LIMITS, *, order: str = "declared") -> None:
        budget = Budget(limits)
        self._expander = Expander(Document(schema, budget), budget)
        self._is_sorted = order == "sorted"

    def contains(self, value: Any) -> bool:
        """Whether the schema allows `value`."""
        return self._has(self._expander.root(), value)

    def text(self, value: Any) -> str:
        """`value` as JSON text, keys in the order of the first alternative that allows them; any value has a text."""
        return write(self._ordered(self._expander.root(), value))

    def _has(self, formula: Formula, value: Any) -> bool:
        values = self._expander.values(formula)
        match value:
            case None:
                return values.null
            case bool():
                return value in values.booleans
            case int() | float():
                return values.numbers.contains(Fraction(Decimal(repr(value))))
            case str():
                return values.strings.contains(value)
            case list():
                return any(self._list_in(part, value) for part in values.arrays)
        return any(self._dict_in(part, value) for part in values.objects)

    def _list_in(self, part: ArrayPart, value: list[Any]) -> bool:
        if len(value) < part.low or (part.high is not None and len(value) > part.high):
            return False
        if part.unique is not None and part.unique != _distinct(value):
            return False
        for c in part.contains:
            found = sum(self._has(c.formula, item) for item in value[c.start :])
            if found < c.low or (c.high is not None and found > c.high):
                return False
        return all(self._has(part.item(i), item) for i, item in enumerate(value))

    def _dict_in(self, part: ObjectPart, value: dict[str, Any]) -> bool:
        if not part.required <= value.keys() or len(value) < part.low:
            return False
        if part.high is not None and len(value) > part.high:
            return False
        for keys, formula in part.some:
            if not any(keys.contains(key) and self._has(formula, item) for key, item in value.items()):
                return False
        return all(self._has(part.value(key), item) for key, item in value.items())

    def _ordered(self, formula: Formula, value: Any) -> Any:
        values = self._expander.values(formula)
        if isinstance(value, list):
            lists = [part for part in values.arrays if self._list_in(part, value)] or [*values.arrays, ArrayPart()]
            return [self._ordered(lists[0].item(i), item) for i, item in enumerate(value)]
        if isinstance(value, dict):
            maps = [part for part in values.objects if self._dict_in(part, value)] or [*values.objects, ObjectPart()]
            return {key: self._ordered(maps[0].value(key), value[key]) for key in self._keys(maps[0], value)}
        return value

    def _keys(self, part: ObjectPart, value: dict[str, Any]) -> Sequence[str]:
        declared = spell_out(part, self._expander).table
        named = sorted(declared) if self._is_sorted else list(declared)
        first = [key for key in named if key in value]
        others = [key for key in value if key not in first]
        proofs = [key for key in others if any(k.contains(key) and self._has(f, value[key]) for k, f in part.some)]
        return first + [key for key in others if key not in proofs] + proofs


def _distinct(value: list[Any]) -> bool:
    texts = [json.dumps(_plain(item), sort_keys=True) for item in value]
    return len(texts) == len(set(texts))


def _plain(value: Any) -> Any:
    """Equal JSON values as equal Python values: 1.0 is 1, and booleans stay apart from numbers."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case list():
            return [_plain(item) for item in value]
        case dict():
            return {key: _plain(item) for key, item in value.items()}
    return value


def write(value: Any) -> str:
    """JSON text with separators ", " and ": ", numbers without exponent and without a fraction of zero."""
    match value:
        case list():
            return "[" + ", ".join(map(write, value)) + "]"
        case dict():
            return "{" + ", ".join(f"{write(key)}: {write(item)}" for key, item in value.items()) + "}"
        case float():
            return _decimal(value)
    return json.dumps(value, ensure_ascii=False)


def _decimal(value: float) -> str:
    text = format(Decimal(repr(value)), "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text
