"""Automata over decimal texts `-? int ( "." digits )?`: which of them denote numbers of an interval or multiples.

Letters are 0..9 for the digits and 10 for the point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor

from guided_grammar.alphabet import partition
from guided_grammar.automata import NOTHING, Dfa, make, prefixed
from guided_grammar.budget import Budget
from guided_grammar.minimise import DEAD, Row

State = tuple[int, ...]

_POINT = 10
_STEPS_PER_STATE = 44
"""Eleven letters, each of which calls back: several times the work of following a stored edge."""
_ALPHABET, _MEMBERS = partition([*(((48 + d, 48 + d),) for d in range(10)), ((46, 46),)])
_ATOMS = [next(atom for atom, inside in enumerate(_MEMBERS) if letter in inside) for letter in range(11)]


@dataclass(frozen=True)
class Bounds:
    """0 <= low (open?) .. high (open?, None: no bound), with at most so many digits before and after the point."""

    low: Fraction
    low_open: bool
    high: Fraction | None
    high_open: bool
    digits: int
    places: int


@dataclass(frozen=True)
class Question:
    """The numbers between the bounds (None: no bound) that are multiples of `step` and of nothing in `avoid`, with at
    most `digits` digits where the set leaves that open."""

    low: Fraction | None
    low_open: bool
    high: Fraction | None
    high_open: bool
    step: Fraction | None
    avoid: frozenset[Fraction]
    digits: int

    @property
    def is_small(self) -> bool:
        """Its automaton has a few hundred states at most."""
        bounds = [value for value in (self.low, self.high) if value is not None]
        steps = self.step is None or (self.step.numerator <= 10 and self.step.denominator <= 10**6)
        return steps and not self.avoid and self.digits <= 40 and all(abs(n) * n.denominator < 10**10 for n in bounds)


def written(value: Fraction) -> str | None:
    """The one text of a number: no fraction for an integer, no zeros after the last digit; None for 1/3."""
    if _decimal(value) != value:
        return None
    places = _places(value)
    digits = f"{abs(int(value * 10**places)):0{places + 1}d}"
    whole = digits[: len(digits) - places]
    return ("-" if value < 0 else "") + whole + ("." + digits[len(digits) - places :] if places else "")


def texts(question: Question, budget: Budget) -> Dfa:
    """Texts of its numbers: no fraction where `step` is an integer, no `-0`.

    Spends the same steps whether or not the answer was known: the common ones are kept for the life of the process.
    """
    if not question.is_small:
        return _texts(question, budget)
    dfa, steps = _small(question)
    budget.spend(steps)
    return dfa


@lru_cache(maxsize=128)
def _small(question: Question) -> tuple[Dfa, int]:
    budget = Budget()
    return _texts(question, budget), budget.steps


def _texts(question: Question, budget: Budget) -> Dfa:
    low, low_open, high, high_open = question.low, question.low_open, question.high, question.high_open
    step, avoid, digits = question.step, question.avoid, question.digits
    positive: Dfa = NOTHING
    if high is None or high > 0 or (high == 0 and not high_open):
        least = (Fraction(0), False) if low is None or low < 0 else (low, low_open)
        positive = _magnitudes(*least, high, high_open, step, avoid, digits, budget)
    if low is not None and low >= 0:
        return positive
    least = (Fraction(0), True) if high is None or high >= 0 else (-high, high_open)
    negative = _magnitudes(*least, None if low is None else -low, low_open, step, avoid, digits, budget)
    return positive.union(prefixed("-", negative, budget), budget)


def _magnitudes(
    low: Fraction,
    low_open: bool,
    high: Fraction | None,
    high_open: bool,
    step: Fraction | None,
    avoid: frozenset[Fraction],
    digits: int,
    budget: Budget,
) -> Dfa:
    """The same for non-negative numbers."""
    wide = len(str(ceil(low + 2 * (step or 1)))) if high is None else len(str(floor(high)))
    exact = max(_places(low), 0 if high is None else _places(high), *(_places(_decimal(a)) for a in avoid), 0)
    places = max(digits, exact + 1) if step is None else _places(_decimal(step))
    bounds = Bounds(low, low_open, high, high_open, max(digits, wide) if high is None else wide, places)
    dfa = _between(bounds, budget)
    if step is not None:
        dfa = dfa.intersect(_multiples(step, budget), budget)
    for other in sorted(avoid):
        dfa = dfa.difference(_multiples(other, budget), budget)
    return dfa


def _decimal(step: Fraction) -> Fraction:
    """The least multiple of `step` that is a finite decimal; its multiples are all decimal multiples of `step`."""
    rest = step.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return step * rest


def _places(value: Fraction) -> int:
    """Digits after the point of a finite decimal."""
    places = 0
    while value.denominator != 1:
        value, places = value * 10, places + 1
    return places


def _fraction_digits(value: Fraction) -> list[int]:
    places = _places(value)
    scaled = (value - floor(value)) * 10**places
    return [int(c) for c in f"{int(scaled):0{places}d}"] if places else []


def _explore(
    start: State,
    step: Callable[[State, int], State | None],
    accepts: Callable[[State], bool],
    budget: Budget,
) -> Dfa:
    numbers = {start: 0}
    order = [start]
    rows: list[Row] = []
    for state in order:
        row: list[tuple[int, int]] = []
        for letter in range(11):
            target = step(state, letter)
            if target is not None:
                if target not in numbers:
                    numbers[target] = len(order)
                    order.append(target)
                row.append((_ATOMS[letter], numbers[target]))
        budget.spend(_STEPS_PER_STATE)
        rows.append((DEAD, tuple(sorted(row))))
    return make(_ALPHABET, rows, [accepts(state) for state in order], budget)


_START: State = (0, 0, 0)


def _between(bounds: Bounds, budget: Budget) -> Dfa:
    """Texts without sign whose value is inside the bounds."""
    comparison = _Comparison(bounds)
    return _explore(_START, comparison.step, comparison.accepts, budget)


class _Comparison:
    """States: (digits so far, prefix against low, prefix against high) before the point,
    (-1 - places so far, against low, against high) after it. A prefix compares as -1, 0, 1."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._low = [int(c) for c in str(floor(bounds.low))]
        self._low_places = _fraction_digits(bounds.low)
        self._high = None if bounds.high is None else [int(c) for c in str(floor(bounds.high))]
        self._high_places = [] if bounds.high is None else _fraction_digits(bounds.high)

    def step(self, state: State, letter: int) -> State | None:
        count, low, high = state
        if count < 0:
            return None if letter == _POINT else self._place(-1 - count, low, high, letter)
        if letter == _POINT:
            entered = self._whole(state) if count else None
            return None if entered is None or self._bounds.places == 0 else (-1, *entered)
        if count == self._bounds.digits or state[0] == _ZERO:
            return None
        return self._digit(count, low, high, letter)

    def _digit(self, count: int, low: int, high: int, digit: int) -> State:
        if count < len(self._low) and low == 0:
            low = _sign(digit - self._low[count])
        if self._high is not None and count < len(self._high) and high == 0:
            high = _sign(digit - self._high[count])
        return (_ZERO if count == 0 and digit == 0 else count + 1, low, high)

    def _whole(self, state: State) -> tuple[int, int] | None:
        """How a finished whole part compares: None if it is out of bounds whatever follows."""
        count, low, high = state
        count = 1 if count == _ZERO else count
        low = low if count == len(self._low) else _sign(count - len(self._low))
        if self._high is None:
            high = -1
        elif count != len(self._high):
            high = _sign(count - len(self._high))
        return None if low < 0 or high > 0 else (low, high)

    def _place(self, place: int, low: int, high: int, digit: int) -> State | None:
        if place == self._bounds.places:
            return None
        low = low or _sign(digit - (self._low_places[place] if place < len(self._low_places) else 0))
        high = high or _sign(digit - (self._high_places[place] if place < len(self._high_places) else 0))
        return None if low < 0 or high > 0 else (-2 - place, low, high)

    def accepts(self, state: State) -> bool:
        if state[0] in (0, -1):
            return False
        place = max(0, -1 - state[0])
        compared = self._whole(state) if state[0] > 0 else state[1:]
        if compared is None:
            return False
        low, high = compared
        low_ok = low > 0 or (place >= len(self._low_places) and not self._bounds.low_open)
        return low_ok and (high < 0 or place < len(self._high_places) or not self._bounds.high_open)


_ZERO = 10**9
"""The state's count after the whole part `0`, which no digit may follow."""


def _sign(value: int) -> int:
    return (value > 0) - (value < 0)


def _multiples(step: Fraction, budget: Budget) -> Dfa:
    """Texts without sign, of any length, whose value is a multiple of `step`."""
    step = _decimal(step)
    places = _places(step)
    modulus, zeros = int(step * 10**places), 0
    while modulus % 10 == 0:
        modulus, zeros = modulus // 10, zeros + 1

    def follow(state: State, letter: int) -> State | None:
        """(remainder without the last zeros, how many those are, places + 1 or 0 before the point)."""
        remainder, last, after = state
        if letter == _POINT:
            return None if after else (remainder, last, 1)
        if after > places:
            return state if letter == 0 else None
        after = after + 1 if after else 0
        if letter == 0 and last < zeros:
            return remainder, last + 1, after
        if letter == 0:
            return remainder * 10 % modulus, last, after
        return (remainder * 10 ** (last + 1) + letter) % modulus, 0, after

    def accepts(state: State) -> bool:
        remainder, last, after = state
        left = places - after + 1 if after else places
        return last == zeros and remainder * 10**left % modulus == 0

    return _explore((0, zeros, 0), follow, accepts, budget)
