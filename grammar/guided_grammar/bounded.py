"""Counted characters of which some are written as escapes: `( [^"\\\\] | escape ){low,high}` without repeating a group.

What xgrammar compiles and masks fast, and what not: a repeated class between two different bounds is fast if a literal
or a class follows it in the same rule (30 ms; 460 ms if a group or a rule follows); a class repeated a fixed number of
times costs 10 ms per repetition; repeating a group or a rule costs milliseconds to seconds per token.
So bounds up to `EXACT` are a chain of rules. Above, a state (low, high) is one repeated class for a rest without
escapes, and for each span of plain characters before the next escape one more that leads to what certainly remains, on
a grid of `STEPS` steps: a text without escapes may use every length, an escape may cost one step of `high` more than it
is away (twice as much beyond `EVEN` spans). No text outside the bounds is ever allowed.
"""

from __future__ import annotations

from guided_grammar.ir import NOTHING, Alt, Expr, Ref, Rules, alt, chars, repeat, seq
from guided_grammar.ranges import Ranges

EXACT = 8
STEPS = 24
LOW_STEPS = 4
EVEN = 8
SHORT = 20

Count = tuple[int, int | None]


def bounded(plain: Ranges, escape: Expr | None, low: int, high: int | None, tail: Expr, rules: Rules) -> Expr:
    """`low` to `high` (None: no bound) times a plain character or an escape, then `tail`."""
    if escape is None:
        return counted(chars(plain), low, high, tail)
    if high == 0:
        return tail
    return _Counter(plain, escape, low, high, tail, rules).run((low, high))


def counted(item: Expr, low: int, high: int | None, tail: Expr) -> Expr:
    """`low` to `high` times `item`, then one of the options of `tail`, each behind its own repetition."""
    options = tail.options if isinstance(tail, Alt) and (low, high) != (0, None) else (tail,)
    return alt(*(seq(repeat(item, low, high), option) for option in options))


class _Counter:
    def __init__(self, plain: Ranges, escape: Expr, low: int, high: int | None, tail: Expr, rules: Rules) -> None:
        self._plain, self._escape, self._tail, self._rules = chars(plain), escape, tail, rules
        self._exact = (low if high is None else high) <= EXACT
        narrowest = 2 if high is not None and high <= SHORT else 3
        self._high, self._high_step = high, max(narrowest, -(-(high or 0) // STEPS))
        self._low_width = max(narrowest, -(-low // LOW_STEPS))
        self._low_step = 1 if low <= EXACT else self._low_width
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
            return seq(repeat(self._plain, 0, None), self._free())
        if self._exact:
            end = self._tail if low == 0 else NOTHING
            if high == 0:
                return end
            after = self._visit((max(0, low - 1), None if high is None else high - 1))
            return alt(end, seq(self._plain, after), seq(self._escape, after))
        options = [counted(self._plain, low, high, self._free() if high is None else self._tail)]
        for least, most in self._spans(low, high):
            after_span = self._after(low, high, least, most)
            if after_span is not None:
                options.append(seq(repeat(self._plain, least, most), self._escape, self._visit(after_span)))
        return alt(*options)

    def _free(self) -> Expr:
        """What may follow plain characters once no bound is left to meet."""
        return alt(self._tail, seq(self._escape, self._visit((0, None))))

    def _after(self, low: int, high: int | None, least: int, most: int) -> Count | None:
        """What certainly remains after `least` to `most` plain characters and an escape, None if that is impossible."""
        low = -(-max(0, low - least - 1) // self._low_step) * self._low_step
        if high is None or self._high is None:
            return low, None
        used = self._high - (high - most - 1)
        high = self._high - -(-used // self._high_step) * self._high_step
        return (low, high) if low <= high else None

    def _spans(self, low: int, high: int | None) -> list[tuple[int, int]]:
        """Disjoint spans of the number of plain characters before an escape: first those that leave some of `low`."""
        last = low - 2 if high is None else high - 1
        short = max(0, min(low - 2, last))
        short = 0 if short == 1 else short
        spans = self._widening(1, short, self._low_width) + self._widening(short + 1, last, self._high_step)
        return [(0, 0), *spans]

    def _widening(self, least: int, last: int, width: int) -> list[tuple[int, int]]:
        spans: list[tuple[int, int]] = []
        while least <= last:
            spans.append((least, min(least + width - 1, last)))
            least = spans[-1][1] + 1
            width *= 1 if len(spans) < EVEN else 2
        if spans and spans[-1][0] == last:  # one fixed count: too slow, so part of the span before, or left out
            spans[-2:] = [(spans[-2][0], last)] if len(spans) > 1 else []
        return spans
