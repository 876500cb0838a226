"""Counted characters of which some are written as escapes: `( [^"\\\\] | escape ){low,high}` without repeating a group.

Repeating a group or a rule costs milliseconds to seconds per token, a repeated character class costs microseconds.
So a state (low, high) is one repeated class for a rest without escapes, and for each span of plain characters before
the next escape one more repeated class that leads to the state that certainly remains. Bounds up to `EXACT` are met
exactly. Above, spans are rounded to a grid: a text without escapes may use every length, an escape may cost up to one
grid step of `high`. No text outside the bounds is ever allowed.
"""

from __future__ import annotations

from guided_grammar.ir import Expr, Ref, Rules, alt, chars, repeat, seq
from guided_grammar.ranges import Ranges

EXACT = 8
STEPS = 16

Count = tuple[int, int | None]


def bounded(plain: Ranges, escape: Expr | None, low: int, high: int | None, tail: Expr, rules: Rules) -> Expr:
    """`low` to `high` (None: no bound) times a plain character or an escape, then `tail`."""
    if escape is None:
        return seq(repeat(chars(plain), low, high), tail)
    if high == 0:
        return tail
    return _Counter(plain, escape, low, high, tail, rules).run((low, high))


class _Counter:
    def __init__(self, plain: Ranges, escape: Expr, low: int, high: int | None, tail: Expr, rules: Rules) -> None:
        self._plain, self._escape, self._tail, self._rules = chars(plain), escape, tail, rules
        self._exact = (high if high is not None else low) <= EXACT
        self._high, self._high_step = high, 1 if high is None else -(-high // STEPS)
        self._low_step = 1 if low <= EXACT else -(-low // EXACT)
        self._states: dict[Count, Ref] = {}
        self._queue: list[Count] = []

    def run(self, start: Count) -> Ref:
        first = self._visit(start)
        while self._queue:
            count = self._queue.pop()
            self._rules.define(self._states[count], self._body(*count))
        return first

    def _visit(self, count: Count) -> Ref:
        if count not in self._states:
            self._states[count] = self._rules.reserve("count")
            self._queue.append(count)
        return self._states[count]

    def _body(self, low: int, high: int | None) -> Expr:
        if high is None and low == 0:
            again = seq(self._escape, self._visit((0, None)))
            return seq(repeat(self._plain, 0, None), alt(self._tail, again))
        if high is None:
            options = [seq(repeat(self._plain, low, low), self._visit((0, None)))]
        else:
            options = [seq(repeat(self._plain, low, high), self._tail)]
        for least, most in self._spans(low, high):
            after = self._after(low, high, least, most)
            if after is not None:
                options.append(seq(repeat(self._plain, least, most), self._escape, self._visit(after)))
        return alt(*options)

    def _after(self, low: int, high: int | None, least: int, most: int) -> Count | None:
        """What certainly remains after `least` to `most` plain characters and an escape, None if that is impossible."""
        low = -(-max(0, low - least - 1) // self._low_step) * self._low_step
        if high is None or self._high is None:
            return low, None
        used = self._high - (high - most - 1)
        high = self._high - (used if self._exact else -(-used // self._high_step) * self._high_step)
        return (low, high) if low <= high else None

    def _spans(self, low: int, high: int | None) -> list[tuple[int, int]]:
        """Disjoint spans of the number of plain characters before an escape: first those that leave some of `low`."""
        last = low - 1 if high is None else high - 1
        short = max(-1, min(low - 2, last))
        return self._widening(0, short, self._low_step) + self._widening(short + 1, last, self._high_step)

    def _widening(self, least: int, last: int, width: int) -> list[tuple[int, int]]:
        spans: list[tuple[int, int]] = []
        while least <= last:
            spans.append((least, min(least + width - 1, last)))
            least = spans[-1][1] + 1
            width = width if width == 1 and self._exact else 2 * width
        return spans
