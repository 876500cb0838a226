"""Array parts -> grammar: a chain of rules, one for each number of items that makes a difference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from guided_grammar.errors import LimitExceeded
from guided_grammar.ir import EMPTY, NOTHING, Expr, Ref, alt, repeat, seq, text
from guided_grammar.schema.arrays import ArrayPart, Contains
from guided_grammar.schema.emit_unique import distinct
from guided_grammar.schema.formula import FALSE, Formula, both, negate

if TYPE_CHECKING:
    from guided_grammar.schema.emit import Emitter

_CLOSE = text("]")
_MAX_CHAIN = 256
"""Longer runs of equal items are built by doubling; a chain costs one rule an item."""


def array(emitter: Emitter, part: ArrayPart) -> Expr:
    """The texts of the arrays of `part`."""
    return seq(text("["), _any(emitter, part) if part.unique is None else distinct(emitter, part, _any))


def _any(emitter: Emitter, part: ArrayPart) -> Expr:
    """What follows the opening bracket, items equal or not."""
    return _Counted(emitter, part).start() if part.contains else _plain(emitter, part)


def _plain(emitter: Emitter, part: ArrayPart) -> Expr:
    """What follows the opening bracket. Items past the prefix are alike, so only their number counts."""
    fixed = len(part.prefix)
    rest = emitter.value(part.rest) if part.high is None or part.high > fixed else NOTHING
    high = part.high if rest != NOTHING else min(fixed, fixed if part.high is None else part.high)
    if high is not None and high < part.low:
        return NOTHING
    comma, most = emitter.comma, None if high is None else max(0, high - fixed)
    after = _run(emitter, seq(comma, rest), max(0, part.low - fixed), most)
    tail = seq(after, _CLOSE)
    if not fixed:
        return _first(emitter, rest, part.low, high)
    for i in reversed(range(min(fixed, fixed if high is None else high))):
        item = seq(comma if i else EMPTY, emitter.value(part.prefix[i]), tail)
        tail = emitter.rules.add(alt(_CLOSE, item) if i >= part.low else item, "a")
    return tail


def _first(emitter: Emitter, item: Expr, low: int, high: int | None) -> Expr:
    """Any `low` to `high` equal items and the closing bracket."""
    if high == 0 or item == NOTHING:
        return _CLOSE if low == 0 else NOTHING
    more = _run(emitter, seq(emitter.comma, item), max(0, low - 1), None if high is None else high - 1)
    some = seq(item, more, _CLOSE)
    return some if low else alt(_CLOSE, some)


def _run(emitter: Emitter, item: Expr, low: int, high: int | None) -> Expr:
    """`low` to `high` times `item`, in few rules."""
    emitter.budget.spend(min(low if high is None else high, 4 * _MAX_CHAIN))
    if (low if high is None else high) <= _MAX_CHAIN:
        return repeat(item, low, high)
    must = _exactly(emitter, item, low)
    return seq(must, repeat(item, 0, None) if high is None else _up_to(emitter, item, high - low))


def _exactly(emitter: Emitter, item: Expr, count: int) -> Expr:
    if count <= _MAX_CHAIN // 4:
        return repeat(item, count, count)
    half = emitter.rules.add(_exactly(emitter, item, count // 2), "x")
    return seq(half, half, item if count % 2 else EMPTY)


def _up_to(emitter: Emitter, item: Expr, count: int) -> Expr:
    """Halves of halves: each level has two sizes, so that few rules suffice for any count."""
    known: dict[int, Expr] = {}

    def up_to(size: int) -> Expr:
        if size not in known:
            known[size] = repeat(item, 0, size) if size <= _MAX_CHAIN // 4 else split(size)
        return known[size]

    def split(size: int) -> Expr:
        full = size // 2 + 1
        short = emitter.rules.add(up_to(full - 1), "x")
        return alt(short, seq(emitter.rules.add(_exactly(emitter, item, full), "x"), rest(size - full)))

    def rest(size: int) -> Expr:
        return up_to(size) if size <= _MAX_CHAIN // 4 else emitter.rules.add(up_to(size), "x")

    return up_to(count)


@dataclass(frozen=True)
class _State:
    """index: items so far, up to the last that makes a difference. counts: matches so far, by `contains`."""

    index: int
    counts: tuple[int, ...]


class _Counted:
    """Arrays with `contains`: each item is chosen as matching or not, and the matches are counted."""

    def __init__(self, emitter: Emitter, part: ArrayPart) -> None:
        self._emitter, self._part = emitter, part
        starts = [c.start for c in part.contains]
        self._last = part.high if part.high is not None else max([len(part.prefix), part.low, 1, *starts])
        self._refs: dict[_State, Ref] = {}
        self._waiting: list[_State] = []

    def start(self) -> Expr:
        first = self._visit(_State(0, (0,) * len(self._part.contains)))
        while self._waiting:
            state = self._waiting.pop()
            self._emitter.rules.define(self._refs[state], self._body(state))
        return first

    def _visit(self, state: _State) -> Ref:
        found = self._refs.get(state)
        if found is None:
            if len(self._refs) > 4096:
                raise LimitExceeded("array states", 4096, None, keyword="contains")
            found = self._refs[state] = self._emitter.rules.reserve("c")
            self._waiting.append(state)
        return found

    def _body(self, state: _State) -> Expr:
        part = self._part
        counted = zip(part.contains, state.counts, strict=True)
        options: list[Expr] = []
        if state.index >= part.low and all(count >= c.low for c, count in counted):
            options.append(_CLOSE)
        if part.high is None or state.index < part.high:
            comma = self._emitter.comma if state.index else EMPTY
            for formula, counts in self._choices(state):
                after = _State(min(state.index + 1, self._last), counts)
                options.append(seq(comma, self._emitter.value(formula), self._visit(after)))
        return alt(*options)

    def _choices(self, state: _State) -> Iterator[tuple[Formula, tuple[int, ...]]]:
        """(what the next item is, the counts after it) for each way it can count."""
        budget = self._emitter.budget
        signs = [self._signs(c, state, i) for i, c in enumerate(self._part.contains)]
        for chosen in product(*signs):
            formula = self._part.item(state.index)
            for limit, _ in chosen:
                formula = formula if limit is None else both(formula, limit, budget)
            budget.spend(4, "contains")
            if formula != FALSE and self._emitter.expander.possible(formula):
                yield formula, tuple(count for _, count in chosen)

    def _signs(self, c: Contains, state: _State, i: int) -> list[tuple[Formula | None, int]]:
        """The ways of one `contains`: (what it asks of the item, None nothing; its count after the item)."""
        count = state.counts[i]
        if state.index < c.start or (c.high is None and count >= c.low):
            return [(None, count)]
        missed = (negate(c.formula, self._emitter.budget), count)
        return [missed] if count == c.high else [missed, (c.formula, count + 1)]
