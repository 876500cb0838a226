"""Sets of arrays: one `ArrayPart` is a conjunction of constraints, a tuple of parts their union."""

from __future__ import annotations

from dataclasses import dataclass, replace

from guided_grammar.budget import Budget
from guided_grammar.schema.formula import FALSE, TRUE, Formula, both, either, negate


@dataclass(frozen=True)
class Contains:
    """Between `low` and `high` of the items from index `start` on satisfy `formula`."""

    formula: Formula
    start: int
    low: int
    high: int | None


@dataclass(frozen=True)
class SeenItems:
    """What `unevaluatedItems` leaves alone: items below `count` (None: all), and those that satisfy `formula`."""

    count: int | None = 0
    formula: Formula = FALSE


@dataclass(frozen=True)
class ArrayPart:
    """unique: True no two items equal, False at least two equal, None either."""

    prefix: tuple[Formula, ...] = ()
    rest: Formula = TRUE
    low: int = 0
    high: int | None = None
    contains: tuple[Contains, ...] = ()
    unique: bool | None = None
    seen: SeenItems = SeenItems()

    def item(self, index: int) -> Formula:
        return self.prefix[index] if index < len(self.prefix) else self.rest

    @property
    def is_any(self) -> bool:
        return self == ArrayPart(seen=self.seen)


def least(a: int | None, b: int | None) -> int | None:
    """The smaller of two upper bounds, None being no bound."""
    return b if a is None else a if b is None else min(a, b)


def clean(part: ArrayPart) -> ArrayPart | None:
    """The part in normal form; None when it is plainly empty."""
    prefix, high = part.prefix, part.high
    closed = prefix.index(FALSE) if FALSE in prefix else len(prefix) if part.rest == FALSE else None
    high = least(high, closed)
    if high is not None:
        prefix = prefix[:high]
    while prefix and prefix[-1] == part.rest:
        prefix = prefix[:-1]
    unique = None if part.unique and high is not None and high <= 1 else part.unique
    low = max([part.low, 2 if unique is False else 0] + [c.start + c.low for c in part.contains if c.low])
    contains = tuple(c for c in part.contains if c.low or c.high is not None)
    if (high is not None and low > high) or any(c.high is not None and c.high < c.low for c in contains):
        return None
    if any(c.low and c.formula == FALSE for c in contains):
        return None
    return replace(part, prefix=prefix, low=low, high=high, contains=contains, unique=unique)


def _join(a: tuple[Contains, ...], b: tuple[Contains, ...]) -> tuple[Contains, ...]:
    merged = {(c.formula, c.start): c for c in a}
    for c in b:
        old = merged.get((c.formula, c.start))
        if old is not None:
            c = replace(c, low=max(c.low, old.low), high=least(c.high, old.high))
        merged[(c.formula, c.start)] = c
    return tuple(merged.values())


def conjoin(a: ArrayPart, b: ArrayPart, budget: Budget) -> ArrayPart | None:
    """The arrays of both; None when plainly empty."""
    if a.unique is not None and b.unique is not None and a.unique != b.unique:
        return None
    length = max(len(a.prefix), len(b.prefix))
    budget.spend(1 + length)
    return clean(
        ArrayPart(
            tuple(both(a.item(i), b.item(i), budget) for i in range(length)),
            both(a.rest, b.rest, budget),
            max(a.low, b.low),
            least(a.high, b.high),
            _join(a.contains, b.contains),
            b.unique if a.unique is None else a.unique,
            _see(a.seen, b.seen, budget),
        )
    )


def _see(a: SeenItems, b: SeenItems, budget: Budget) -> SeenItems:
    count = None if a.count is None or b.count is None else max(a.count, b.count)
    return SeenItems(count, either(a.formula, b.formula, budget))


def complement(part: ArrayPart, budget: Budget) -> list[ArrayPart]:
    """Every array outside of `part`: one part for each way to be outside."""
    ways: list[ArrayPart | None] = []
    if part.low:
        ways.append(ArrayPart(high=part.low - 1))
    if part.high is not None:
        ways.append(ArrayPart(low=part.high + 1))
    for i, formula in enumerate(part.prefix):
        if formula != TRUE:
            ways.append(ArrayPart((TRUE,) * i + (negate(formula, budget),), low=i + 1))
    if part.rest not in (TRUE, FALSE) or (part.rest == FALSE and part.high is None):
        ways.append(ArrayPart(contains=(Contains(negate(part.rest, budget), len(part.prefix), 1, None),)))
    for c in part.contains:
        if c.low:
            ways.append(ArrayPart(contains=(replace(c, low=0, high=c.low - 1),)))
        if c.high is not None:
            ways.append(ArrayPart(contains=(replace(c, low=c.high + 1, high=None),)))
    if part.unique is not None:
        ways.append(ArrayPart(unique=not part.unique))
    budget.spend(1 + len(ways))
    return [way for way in map(_clean, ways) if way is not None]


def _clean(part: ArrayPart | None) -> ArrayPart | None:
    return None if part is None else clean(part)
