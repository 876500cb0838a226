"""Fewer object parts for the same set: every part that is left costs a pass over it in each later operation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from guided_grammar.budget import Budget
from guided_grammar.schema.formula import either
from guided_grammar.schema.objects import ObjectPart, clean, conjoin

_MAX_COMPARED = 48


def merged(parts: Iterable[ObjectPart], budget: Budget) -> tuple[ObjectPart, ...]:
    """The same union: parts that differ in one property joined, parts inside of another one dropped."""
    kept = tuple(dict.fromkeys(parts))
    while len(kept) > 1:
        joined = _join_once(kept, budget)
        if joined == kept:
            break
        kept = joined
    return _outermost(kept, budget) if 1 < len(kept) <= _MAX_COMPARED else kept


def _join_once(parts: tuple[ObjectPart, ...], budget: Budget) -> tuple[ObjectPart, ...]:
    """{k: A, ...} or {k: B, ...} is {k: A or B, ...}; k may be missing where either allows it."""
    found: dict[object, int] = {}
    result: list[ObjectPart | None] = []
    for part in parts:
        new: ObjectPart = part
        for key, _ in part.props:
            budget.spend(1 + len(part.props) // 8)
            signature = _without(new, key)
            other = found.get(signature)
            if other is not None and result[other] is not None:
                new, result[other] = _one(result[other], new, key, budget), None
                break
        for key, _ in new.props:
            found[_without(new, key)] = len(result)
        result.append(new)
    return tuple(dict.fromkeys(part for part in result if part is not None))


def _without(part: ObjectPart, key: str) -> object:
    props = frozenset(pair for pair in part.props if pair[0] != key)
    low = part.low if part.low > len(part.required) else 0
    return (key, props, part.required - {key}, part.classes, part.default, low, part.high, part.some, part.seen)


def _one(a: ObjectPart | None, b: ObjectPart, key: str, budget: Budget) -> ObjectPart:
    assert a is not None
    formula = either(a.table[key], b.table[key], budget)
    props = tuple((name, formula if name == key else old) for name, old in a.props)
    low = a.low if a.low > len(a.required) else 0
    one = clean(replace(a, props=props, required=a.required & b.required, low=low))
    assert one is not None
    return one


def _outermost(parts: tuple[ObjectPart, ...], budget: Budget) -> tuple[ObjectPart, ...]:
    kept = list(parts)
    for part in parts:
        others = [other for other in kept if other != part]
        if len(others) < len(kept) and any(_within(part, other, budget) for other in others):
            kept = others
    return tuple(kept)


def _within(a: ObjectPart, b: ObjectPart, budget: Budget) -> bool:
    """Sure that `a` is inside of `b`."""
    if not b.required <= a.required or a.seen != b.seen or (b.some and a.some != b.some):
        return False
    if b.low > a.low or (b.high is not None and (a.high is None or a.high > b.high)):
        return False
    both = conjoin(a, b, budget)
    return both is not None and both.same_set(a)
