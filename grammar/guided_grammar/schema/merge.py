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
    found: dict[tuple[str, int], int] = {}
    result: list[ObjectPart | None] = []
    for part in parts:
        budget.spend(4 + 2 * len(part.props))
        new: ObjectPart = part
        for key, mark in _marks(part):
            index = found.get((key, mark))
            other = None if index is None else result[index]
            if index is not None and other is not None and _without(other, key) == _without(part, key):
                new, result[index] = _one(other, part, key, budget), None
                break
        for pair in _marks(new):
            found[pair] = len(result)
        result.append(new)
    return tuple(dict.fromkeys(part for part in result if part is not None))


def _marks(part: ObjectPart) -> list[tuple[str, int]]:
    """(name, hash of the part without what it says about that name) for each declared name."""
    whole = hash((part.classes, part.default, part.high, part.some, part.seen))
    own = {
        pair[0]: hash(pair) ^ (hash((pair[0], "required")) if pair[0] in part.required else 0) for pair in part.props
    }
    for mark in own.values():
        whole ^= mark
    return [(key, whole ^ mark) for key, mark in own.items()]


def _without(part: ObjectPart, key: str) -> object:
    props = {name: formula for name, formula in part.props if name != key}
    low = part.low if part.low > len(part.required) else 0
    return (props, part.required - {key}, part.classes, part.default, low, part.high, part.some, part.seen)


def _one(a: ObjectPart, b: ObjectPart, key: str, budget: Budget) -> ObjectPart:
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
