"""Sets of JSON values, split by type: the algebra that gives every keyword its meaning."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from guided_grammar.budget import Budget
from guided_grammar.schema import arrays, objects
from guided_grammar.schema.arrays import ArrayPart, SeenItems
from guided_grammar.schema.merge import merged
from guided_grammar.schema.numbers import Numbers
from guided_grammar.schema.objects import ObjectPart, SeenKeys
from guided_grammar.schema.strings import Strings

BOTH = frozenset({False, True})
_MAX_LISTED = 256


@dataclass(frozen=True)
class Values:
    """A set of JSON values. The parts of `arrays` and `objects` may overlap; children are formulas, not sets."""

    null: bool
    booleans: frozenset[bool]
    numbers: Numbers
    strings: Strings
    arrays: tuple[ArrayPart, ...]
    objects: tuple[ObjectPart, ...]

    @property
    def is_plainly_empty(self) -> bool:
        """True only when empty; a set whose arrays and objects need impossible children answers False."""
        scalars = self.null or self.booleans or not self.numbers.is_empty() or not self.strings.is_empty()
        return not (scalars or self.arrays or self.objects)


ALL = Values(True, BOTH, Numbers.ANY, Strings.ANY, (ArrayPart(),), (ObjectPart(),))
NONE = Values(False, frozenset(), Numbers.NONE, Strings.NONE, (), ())


def of_type(name: str) -> Values | None:
    """The values of a JSON Schema type, None for a name that is no type."""
    match name:
        case "null":
            return replace(NONE, null=True)
        case "boolean":
            return replace(NONE, booleans=BOTH)
        case "integer":
            return replace(NONE, numbers=Numbers.INTEGERS)
        case "number":
            return replace(NONE, numbers=Numbers.ANY)
        case "string":
            return replace(NONE, strings=Strings.ANY)
        case "array":
            return replace(NONE, arrays=(ArrayPart(),))
        case "object":
            return replace(NONE, objects=(ObjectPart(),))
    return None


def conjoin(a: Values, b: Values, budget: Budget) -> Values:
    """The values in both."""
    if a is ALL:
        return b
    if b is ALL or a is NONE:
        return a
    if b is NONE:
        return b
    return Values(
        a.null and b.null,
        a.booleans & b.booleans,
        a.numbers.intersect(b.numbers, budget),
        a.strings.intersect(b.strings, budget),
        _array_union(arrays.conjoin(x, y, budget) for x in a.arrays for y in b.arrays),
        _object_union((objects.conjoin(x, y, budget) for x in a.objects for y in b.objects), budget),
    )


def unite(a: Values, b: Values, budget: Budget) -> Values:
    """The values in either."""
    budget.spend(len(a.arrays) + len(b.arrays) + len(a.objects) + len(b.objects))
    return Values(
        a.null or b.null,
        a.booleans | b.booleans,
        a.numbers.union(b.numbers, budget),
        a.strings.union(b.strings, budget),
        _array_union(a.arrays + b.arrays),
        _object_union(a.objects + b.objects, budget),
    )


def subtract(a: Values, b: Values, budget: Budget) -> Values:
    """The values of `a` that are not in `b`. Only what `a` holds is ever complemented."""
    left_arrays = a.arrays
    for part in b.arrays if left_arrays else ():
        ways = arrays.complement(part, budget)
        left_arrays = _array_union(arrays.conjoin(x, y, budget) for x in left_arrays for y in ways)
    left_objects = a.objects
    for item in b.objects if left_objects else ():
        left_objects = _without(left_objects, item, budget)
    return Values(
        a.null and not b.null,
        a.booleans - b.booleans,
        _numbers_left(a.numbers, b.numbers, budget),
        _strings_left(a.strings, b.strings, budget),
        left_arrays,
        left_objects,
    )


def _without(parts: tuple[ObjectPart, ...], item: ObjectPart, budget: Budget) -> tuple[ObjectPart, ...]:
    others = objects.complement(item, budget)
    left: list[ObjectPart] = []
    for part in parts:
        if objects.conjoin(part, item, budget) is None:
            left.append(part)
        else:
            left += [both for way in others if (both := objects.conjoin(part, way, budget)) is not None]
    return merged(left, budget)


def _numbers_left(a: Numbers, b: Numbers, budget: Budget) -> Numbers:
    if a.is_empty() or b.is_empty():
        return a
    return Numbers.NONE if b.is_any() else a.intersect(b.complement(budget), budget)


def _strings_left(a: Strings, b: Strings, budget: Budget) -> Strings:
    if a.is_empty() or b.is_empty():
        return a
    if b.is_any():
        return Strings.NONE
    listed = a.finite(_MAX_LISTED)
    if listed is not None:
        return Strings.of([value for value in listed if not b.contains(value)])
    return a.intersect(b.complement(budget), budget)


def forget(a: Values, budget: Budget) -> Values:
    """The same set without the marks that `unevaluatedItems` and `unevaluatedProperties` read."""
    return replace(
        a,
        arrays=_array_union(replace(part, seen=SeenItems()) for part in a.arrays),
        objects=_object_union((replace(part, seen=SeenKeys()) for part in a.objects), budget),
    )


def _array_union(parts: Iterable[ArrayPart | None]) -> tuple[ArrayPart, ...]:
    kept = tuple(dict.fromkeys(part for part in parts if part is not None))
    return (
        next(((part,) for part in kept if part == ArrayPart()), kept)
        if all(part.seen == SeenItems() for part in kept)
        else kept
    )


def _object_union(parts: Iterable[ObjectPart | None], budget: Budget) -> tuple[ObjectPart, ...]:
    return merged((part for part in parts if part is not None), budget)
