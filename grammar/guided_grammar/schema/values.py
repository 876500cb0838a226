"""Sets of JSON values, split by type: the algebra that gives every keyword its meaning."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from guided_grammar.budget import Budget
from guided_grammar.schema import arrays, objects
from guided_grammar.schema.arrays import ArrayPart, SeenItems
from guided_grammar.schema.numbers import Numbers
from guided_grammar.schema.objects import ObjectPart, SeenKeys
from guided_grammar.schema.strings import Strings

BOTH = frozenset({False, True})


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
    return Values(
        a.null and b.null,
        a.booleans & b.booleans,
        a.numbers.intersect(b.numbers, budget),
        a.strings.intersect(b.strings, budget),
        _array_union(arrays.conjoin(x, y, budget) for x in a.arrays for y in b.arrays),
        _object_union(objects.conjoin(x, y, budget) for x in a.objects for y in b.objects),
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
        _object_union(a.objects + b.objects),
    )


def complement(a: Values, budget: Budget) -> Values:
    """Every JSON value that is not in `a`."""
    outside_arrays: tuple[ArrayPart, ...] = (ArrayPart(),)
    for part in a.arrays:
        ways = arrays.complement(part, budget)
        outside_arrays = _array_union(arrays.conjoin(x, y, budget) for x in outside_arrays for y in ways)
    outside_objects: tuple[ObjectPart, ...] = (ObjectPart(),)
    for item in a.objects:
        others = objects.complement(item, budget)
        outside_objects = _object_union(objects.conjoin(x, y, budget) for x in outside_objects for y in others)
    return Values(
        not a.null,
        BOTH - a.booleans,
        a.numbers.complement(budget),
        a.strings.complement(budget),
        outside_arrays,
        outside_objects,
    )


def forget(a: Values) -> Values:
    """The same set without the marks that `unevaluatedItems` and `unevaluatedProperties` read."""
    return replace(
        a,
        arrays=_array_union(replace(part, seen=SeenItems()) for part in a.arrays),
        objects=_object_union(replace(part, seen=SeenKeys()) for part in a.objects),
    )


def _array_union(parts: Iterable[ArrayPart | None]) -> tuple[ArrayPart, ...]:
    kept = tuple(dict.fromkeys(part for part in parts if part is not None))
    return next(((part,) for part in kept if part == ArrayPart()), kept) if _unmarked(kept) else kept


def _object_union(parts: Iterable[ObjectPart | None]) -> tuple[ObjectPart, ...]:
    kept = tuple(dict.fromkeys(part for part in parts if part is not None))
    return next(((part,) for part in kept if part == ObjectPart()), kept) if _unmarked(kept) else kept


def _unmarked(parts: tuple[ArrayPart, ...] | tuple[ObjectPart, ...]) -> bool:
    return all(part.seen in (SeenItems(), SeenKeys()) for part in parts)
