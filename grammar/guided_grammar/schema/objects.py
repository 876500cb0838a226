"""Sets of objects: one `ObjectPart` is a conjunction of constraints, a tuple of parts their union."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from guided_grammar.budget import Budget
from guided_grammar.schema.arrays import least
from guided_grammar.schema.formula import FALSE, TRUE, Formula, both, negate
from guided_grammar.schema.strings import Strings


@dataclass(frozen=True)
class Keys:
    """The property names of `strings` except the listed ones."""

    strings: Strings
    without: frozenset[str] = frozenset()

    def contains(self, key: str) -> bool:
        return key not in self.without and self.strings.contains(key)

    def both(self, other: Keys, budget: Budget) -> Keys:
        return Keys(self.strings.intersect(other.strings, budget), self.without | other.without)

    def exact(self, budget: Budget) -> Strings:
        """The same set with the exceptions taken out."""
        budget.spend(4 * len(self.without))
        listed = [key for key in self.without if self.strings.contains(key)]
        if not listed:
            return self.strings
        return self.strings.intersect(Strings.of(listed, budget).complement(budget), budget)


@dataclass(frozen=True)
class SeenKeys:
    """The names that `unevaluatedProperties` leaves alone."""

    keys: frozenset[str] = frozenset()
    classes: tuple[Strings, ...] = ()
    everything: bool = False


@dataclass(frozen=True)
class ObjectPart:
    """props: declared names, in order. classes: for any other name the first class that has it counts, else `default`.
    low, high: number of properties. some: for each, at least one property of these names satisfies the formula."""

    props: tuple[tuple[str, Formula], ...] = ()
    required: frozenset[str] = frozenset()
    classes: tuple[tuple[Strings, Formula], ...] = ()
    default: Formula = TRUE
    low: int = 0
    high: int | None = None
    some: tuple[tuple[Keys, Formula], ...] = ()
    seen: SeenKeys = SeenKeys()

    @cached_property
    def table(self) -> dict[str, Formula]:
        return dict(self.props)

    def same_set(self, other: ObjectPart) -> bool:
        """Written alike but for the order of properties, and for properties that `classes` treat alike."""
        keys = self.table.keys() | other.table.keys()
        mine = (self.required, self.classes, self.default, self.low, self.high, self.some)
        theirs = (other.required, other.classes, other.default, other.low, other.high, other.some)
        return mine == theirs and all(self.value(key) == other.value(key) for key in keys)

    @property
    def is_any(self) -> bool:
        return self == ObjectPart(seen=self.seen)

    def value(self, key: str) -> Formula:
        """What the value of `key` must satisfy where it is present."""
        declared = self.table.get(key)
        if declared is not None:
            return declared
        return next((formula for strings, formula in self.classes if strings.contains(key)), self.default)

    def others(self, budget: Budget, *, with_barred: bool = False) -> Iterator[tuple[Keys, Formula]]:
        """The names outside of `props` as disjoint classes, none of them plainly empty.

        Names that nothing may be said under are left out unless `with_barred`.
        """
        declared = frozenset(self.table)
        rest: Strings = Strings.ANY
        for i, (strings, formula) in enumerate(self.classes):
            names = rest.intersect(strings, budget)
            if not names.is_empty() and (with_barred or formula != FALSE):
                yield Keys(names, declared), formula
            if i + 1 < len(self.classes) or self.default != FALSE or with_barred:
                rest = rest.intersect(strings.complement(budget), budget)
        if (with_barred or self.default != FALSE) and not rest.is_empty():
            yield Keys(rest, declared), self.default


def clean(part: ObjectPart) -> ObjectPart | None:
    """The part in normal form; None when it is plainly empty."""
    low = max(part.low, len(part.required), 1 if part.some else 0)
    if part.high is not None and low > part.high:
        return None
    if any(part.value(key) == FALSE for key in part.required) or any(formula == FALSE for _, formula in part.some):
        return None
    classes, default = part.classes, part.default
    for i, (strings, formula) in enumerate(classes):
        if strings.is_any():
            classes, default = classes[:i], formula
            break
    if all(formula == default for _, formula in classes):
        classes = ()
    return replace(part, low=low, classes=classes, default=default)


def conjoin(a: ObjectPart, b: ObjectPart, budget: Budget) -> ObjectPart | None:
    """The objects of both; None when plainly empty."""
    budget.spend(16 + 2 * (len(a.props) + len(b.props)))
    props = {key: both(formula, b.value(key), budget) for key, formula in a.props}
    props |= {key: both(a.value(key), formula, budget) for key, formula in b.props if key not in props}
    return clean(
        ObjectPart(
            tuple(props.items()),
            a.required | b.required,
            tuple(_product(a, b, budget)),
            both(a.default, b.default, budget),
            max(a.low, b.low),
            least(a.high, b.high),
            tuple(dict.fromkeys(a.some + b.some)),
            SeenKeys(
                a.seen.keys | b.seen.keys,
                tuple(dict.fromkeys(a.seen.classes + b.seen.classes)),
                a.seen.everything or b.seen.everything,
            ),
        )
    )


def _product(a: ObjectPart, b: ObjectPart, budget: Budget) -> Iterator[tuple[Strings, Formula]]:
    """The first-match classes of both at once, without the last pair of defaults."""
    ours = (*a.classes, (Strings.ANY, a.default))
    theirs = (*b.classes, (Strings.ANY, b.default))
    budget.spend(len(ours) * len(theirs))
    for i, (strings, formula) in enumerate(ours):
        for j, (strings2, formula2) in enumerate(theirs):
            if i == len(a.classes) and j == len(b.classes):
                return
            names = strings.intersect(strings2, budget)
            if not names.is_empty():
                yield names, both(formula, formula2, budget)


def complement(part: ObjectPart, budget: Budget) -> list[ObjectPart]:
    """Every object outside of `part`, by the first required property that is missing or wrong, or else by another way.

    So the ways of several variants that are told apart by a required property exclude each other.
    """
    ways: list[ObjectPart] = []
    held: tuple[tuple[str, Formula], ...] = ()
    declared = [key for key in part.table if key in part.required]
    for key in [*declared, *sorted(part.required - part.table.keys())]:
        formula = part.value(key)
        ways.append(ObjectPart((*held, (key, negate(formula, budget))), frozenset(name for name, _ in held)))
        held = (*held, (key, formula))
    rest = ObjectPart(held, part.required)
    found = [clean(way) for way in ways]
    found += [conjoin(rest, way, budget) for way in _other_ways(part, budget)]
    return [way for way in found if way is not None]


def _other_ways(part: ObjectPart, budget: Budget) -> Iterator[ObjectPart]:
    """The ways out of `part` that no required property shows."""
    for key, formula in part.props:
        if formula != TRUE and key not in part.required:
            yield ObjectPart(((key, negate(formula, budget)),), frozenset({key}))
    if part.default != TRUE or part.classes:
        named = frozenset(part.required)
        for keys, formula in part.others(budget, with_barred=True):
            if formula != TRUE:
                yield ObjectPart(some=((replace(keys, without=keys.without | named), negate(formula, budget)),))
    if part.low > max(len(part.required), 1 if part.some else 0):
        yield ObjectPart(high=part.low - 1)
    if part.high is not None:
        yield ObjectPart(low=part.high + 1)
    for keys, formula in part.some:
        spared = tuple((key, TRUE) for key in sorted(keys.without))
        yield ObjectPart(spared, classes=((keys.strings, negate(formula, budget)),))
