"""Reading keyword values of a schema node, with errors that say where."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from guided_grammar.errors import InvalidConstraint
from guided_grammar.schema.dialect import known
from guided_grammar.schema.document import Node


def applies(node: Node, keyword: str) -> bool:
    """Whether the schema states `keyword` and its draft knows it."""
    return keyword in node.schema and known(keyword, node.draft)


def fraction(node: Node, keyword: str) -> Fraction:
    """The number a keyword holds, exactly as written in decimal."""
    value = node.schema[keyword]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidConstraint("must be a number", keyword=keyword, path=node.path)
    return exactly(value, keyword, node.path)


def exactly(value: int | float, keyword: str, path: str) -> Fraction:
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        raise InvalidConstraint("must be a finite number", keyword=keyword, path=path)
    return Fraction(Decimal(repr(value)))


def count(node: Node, keyword: str, default: int | None = None) -> int | None:
    """The non-negative integer a keyword holds."""
    if not applies(node, keyword):
        return default
    value = fraction(node, keyword)
    if value < 0 or value.denominator != 1:
        raise InvalidConstraint("must be a non-negative integer", keyword=keyword, path=node.path)
    return int(value)
