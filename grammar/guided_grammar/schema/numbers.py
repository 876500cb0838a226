"""Sets of rational numbers: unions of intervals x multiples, exact under and, or, not; emitted as decimal texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor, gcd, lcm
from typing import ClassVar

from guided_grammar import automata
from guided_grammar.budget import Budget
from guided_grammar.errors import UnsupportedConstraint
from guided_grammar.ir import NOTHING, Expr, Rules
from guided_grammar.linear import Verbatim, to_expr
from guided_grammar.schema import decimals


@dataclass(frozen=True)
class Span:
    """Numbers between `low` and `high` (None: no bound), multiples of `step` (None: any), of no number in `avoid`."""

    low: Fraction | None = None
    low_open: bool = False
    high: Fraction | None = None
    high_open: bool = False
    step: Fraction | None = None
    avoid: frozenset[Fraction] = frozenset()

    def contains(self, value: Fraction) -> bool:
        above = self.low is None or value > self.low or (value == self.low and not self.low_open)
        below = self.high is None or value < self.high or (value == self.high and not self.high_open)
        return above and below and self.matches(value)

    def matches(self, value: Fraction) -> bool:
        """Whether the multiples allow `value`, bounds aside."""
        if self.step is not None and (value / self.step).denominator != 1:
            return False
        return all((value / other).denominator != 1 for other in self.avoid)

    def reduced(self) -> Span | None:
        """The same set in normal form, None when it is empty."""
        span = self._on_step() if self.step is not None else self
        if any(span.step is not None and (span.step / other).denominator == 1 for other in span.avoid):
            return None
        if span.low is None or span.high is None:
            return span
        if span.low > span.high or (span.low == span.high and (span.low_open or span.high_open)):
            return None
        if span.low == span.high:
            return Span(span.low, False, span.high) if span.matches(span.low) else None
        return span if span.step is None or any(span.matches(value) for value in span.multiples()) else None

    def _on_step(self) -> Span:
        """Bounds moved inwards to multiples, `avoid` within the multiples."""
        step = self.step
        assert step is not None
        low, high = self.low, self.high
        if low is not None:
            low = (floor(low / step) + 1 if self.low_open else ceil(low / step)) * step
        if high is not None:
            high = (ceil(high / step) - 1 if self.high_open else floor(high / step)) * step
        avoid = frozenset(_common(step, other) for other in self.avoid)
        return Span(low, False, high, False, step, avoid)

    def multiples(self) -> Iterable[Fraction]:
        """The multiples of `step` inside both bounds, which are multiples, ascending."""
        assert self.step is not None and self.low is not None and self.high is not None
        value = self.low
        while value <= self.high:
            yield value
            value += self.step

    def meet(self, other: Span) -> Span:
        low, low_open = _tighter(self.low, self.low_open, other.low, other.low_open, 1)
        high, high_open = _tighter(self.high, self.high_open, other.high, other.high_open, -1)
        step = self.step or other.step
        if self.step is not None and other.step is not None:
            step = _common(self.step, other.step)
        return Span(low, low_open, high, high_open, step, self.avoid | other.avoid)

    def outside(self) -> list[Span]:
        """Spans whose union is the complement."""
        found = [replace(self, step=_common(self.step or other, other), avoid=frozenset()) for other in self.avoid]
        if self.step is not None:
            found.append(replace(self, step=None, avoid=frozenset((self.step,))))
        if self.low is not None:
            found.append(Span(high=self.low, high_open=not self.low_open))
        if self.high is not None:
            found.append(Span(low=self.high, low_open=not self.high_open))
        return found


def _common(a: Fraction, b: Fraction) -> Fraction:
    """The least positive number that is a multiple of both."""
    return Fraction(lcm(a.numerator, b.numerator), gcd(a.denominator, b.denominator))


def _tighter(
    a: Fraction | None, a_open: bool, b: Fraction | None, b_open: bool, sign: int
) -> tuple[Fraction | None, bool]:
    if a is None or b is None:
        return (b, b_open) if a is None else (a, a_open)
    if a == b:
        return a, a_open or b_open
    return (a, a_open) if (a > b) == (sign > 0) else (b, b_open)


@dataclass(frozen=True)
class Numbers:
    """A set of numbers. Equal sets are usually, but not always, equal values."""

    spans: tuple[Span, ...]
    ANY: ClassVar[Numbers]
    INTEGERS: ClassVar[Numbers]
    NONE: ClassVar[Numbers]

    @staticmethod
    def interval(low: Fraction | None, low_open: bool, high: Fraction | None, high_open: bool) -> Numbers:
        return _simplified([Span(low, low_open, high, high_open)])

    @staticmethod
    def multiple_of(step: Fraction) -> Numbers:
        """All multiples of `step` > 0."""
        return _simplified([Span(step=step)])

    @staticmethod
    def of(values: Iterable[Fraction]) -> Numbers:
        return _simplified(Span(value, False, value) for value in values)

    def intersect(self, other: Numbers, budget: Budget) -> Numbers:
        budget.spend(len(self.spans) * len(other.spans))
        return _simplified(a.meet(b) for a in self.spans for b in other.spans)

    def union(self, other: Numbers, budget: Budget) -> Numbers:
        budget.spend(len(self.spans) + len(other.spans))
        return _simplified([*self.spans, *other.spans])

    def complement(self, budget: Budget) -> Numbers:
        result = Numbers.ANY
        for span in self.spans:
            result = result.intersect(_simplified(span.outside()), budget)
        return result

    def is_empty(self) -> bool:
        return not self.spans

    def is_any(self) -> bool:
        return self == Numbers.ANY

    def contains(self, value: Fraction) -> bool:
        return any(span.contains(value) for span in self.spans)

    def finite(self, limit: int) -> tuple[Fraction, ...] | None:
        """All values, ascending, when there are at most `limit`, else None."""
        values: set[Fraction] = set()
        for span in self.spans:
            if span.low is None or span.high is None:
                return None
            if span.low == span.high:
                values.add(span.low)
            elif span.step is None or (span.high - span.low) / span.step > _MAX_SCANNED:
                return None
            else:
                values.update(value for value in span.multiples() if span.matches(value))
            if len(values) > limit:
                return None
        return tuple(sorted(values))

    def emit(self, rules: Rules, digits: int, budget: Budget) -> Expr:
        """Decimal texts without exponent: integers as plain digits where only integers are allowed, never `-0`.

        A part that the set leaves unbounded gets at most `digits` digits before and after the point, or as many as the
        bounds and multiples themselves need. Raises UnsupportedConstraint if no such text remains.
        """
        if self.is_empty():
            return NOTHING
        dfa = automata.literals(self._points(), budget)
        for span in self.spans:
            if span.low is None or span.low != span.high:
                bounds = (span.low, span.low_open, span.high, span.high_open)
                found = decimals.texts(decimals.Question(*bounds, span.step, span.avoid, digits), budget)
                dfa = found if dfa.is_empty() else dfa.union(found, budget)
        if dfa.is_empty():
            raise UnsupportedConstraint("no decimal number is known to match", keyword="number")
        return to_expr(dfa, Verbatim(), rules, budget)

    def _points(self) -> Iterator[str]:
        """The texts of the spans of a single number."""
        for span in self.spans:
            text = decimals.written(span.low) if span.low is not None and span.low == span.high else None
            if text is not None:
                yield text


_MAX_SCANNED = 100_000

Numbers.ANY = Numbers((Span(),))
Numbers.INTEGERS = Numbers((Span(step=Fraction(1)),))
Numbers.NONE = Numbers(())


def _simplified(spans: Iterable[Span]) -> Numbers:
    """Without empty spans and duplicates; spans of the same multiples that touch are joined; by bound."""
    reduced = {span for span in (span.reduced() for span in spans) if span is not None}
    kept: list[Span] = []
    for span in sorted(reduced, key=_order):
        if kept and (joined := _joined(kept[-1], span)) is not None:
            kept[-1] = joined
        else:
            kept.append(span)
    return Numbers.ANY if Span() in kept else Numbers(tuple(kept))


def _order(span: Span) -> tuple[Fraction, list[Fraction], bool, Fraction, bool]:
    """By multiples first, so that joinable spans are neighbours."""
    floor_ = Fraction(-(10**400))
    return (
        span.step or Fraction(0),
        sorted(span.avoid),
        span.low is not None,
        floor_ if span.low is None else span.low,
        span.low_open,
    )


def _joined(a: Span, b: Span) -> Span | None:
    """The union of two spans, a before b, when it is a span."""
    if (a.step, a.avoid) != (b.step, b.avoid):
        return None
    if a.high is not None and b.low is not None:
        gap = b.low - a.high
        touches = gap < 0 or (gap == 0 and not (a.high_open and b.low_open)) or (a.step is not None and gap == a.step)
        if not touches:
            return None
    high, high_open = a.high, a.high_open
    if high is not None and (b.high is None or b.high > high or (b.high == high and not b.high_open)):
        high, high_open = b.high, b.high_open
    return replace(a, high=high, high_open=high_open)
