"""How many values a formula has, and how equal ones may be spelled: what watched containers (`watch`) depend on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from guided_grammar.automata import Dfa
from guided_grammar.schema.arrays import ArrayPart
from guided_grammar.schema.formula import Formula
from guided_grammar.schema.numbers import Numbers, Span
from guided_grammar.schema.objects import ObjectPart
from guided_grammar.schema.strings import Piece, Strings
from guided_grammar.watch.marks import Watch

if TYPE_CHECKING:
    from guided_grammar.schema.expand import Expander

_MAX_DEPTH = 4
_MAX_LENGTH = 4096
_MAX_LONGER = 8
ENDLESS = 1 << 13
"""More items than an answer holds."""


class Room:
    """Asks about formulas of one document. The answers err towards few values, and towards several spellings."""

    def __init__(self, expander: Expander) -> None:
        self._expander = expander

    def has(self, formula: Formula, count: int) -> bool:
        """Whether there are surely at least `count` values."""
        return count <= 0 or self.size(formula, count) >= count

    def size(self, formula: Formula, enough: int, depth: int = 0) -> int:
        """At least so many values there are, counted up to `enough`."""
        if depth > _MAX_DEPTH or not self._expander.possible(formula):
            return 0
        values = self._expander.values(formula)
        count = values.null + len(values.booleans) + _num_numbers(values.numbers, enough)
        count += num_strings(values.strings, enough)
        if count < enough:
            count += max((self._arrays(part, enough, depth + 1) for part in values.arrays), default=0)
        if count < enough:
            count += max((self._objects(part, enough, depth + 1) for part in values.objects), default=0)
        return min(count, enough)

    def _arrays(self, part: ArrayPart, enough: int, depth: int) -> int:
        if part.contains or part.unique is False:
            return 0
        if part.high is None and not part.unique and self._expander.possible(part.rest):
            return enough
        longest = 1 if part.unique else part.low + _MAX_LONGER
        lengths = range(part.low, (longest if part.high is None else min(part.high, longest)) + 1)
        sizes = [self.size(part.item(i), enough, depth) for i in range(lengths.stop - 1)]
        return min(enough, sum(_product(sizes[:length], enough) for length in lengths))

    def _objects(self, part: ObjectPart, enough: int, depth: int) -> int:
        """Objects of the fewest properties, the ones with one property more, and with any one undeclared."""
        if part.some:
            return 0
        sizes = {name: self.size(part.value(name), enough, depth) for name in part.table.keys() | part.required}
        spare = sorted((sizes[name] for name in sizes.keys() - part.required if sizes[name]), reverse=True)
        num_spare = max(0, part.low - len(part.required))
        count = _product((sizes[name] for name in part.required), enough)
        count = _product((count, *spare[:num_spare]), enough) if num_spare <= len(spare) else 0
        if count and (part.high is None or part.high > max(part.low, len(part.required))):
            count += count * (sum(spare[num_spare:]) + self._undeclared(part, enough))
        return min(count, enough)

    def _undeclared(self, part: ObjectPart, enough: int) -> int:
        budget = self._expander.budget
        others = ((keys, value) for keys, value in part.others(budget) if self._expander.possible(value))
        return max((num_strings(keys.exact(budget), enough) for keys, _ in others), default=0)

    def watch(self, formula: Formula) -> Watch:
        """How items of `formula` are to be watched."""
        values = self._expander.values(formula)
        plain = not (values.null or values.booleans or values.arrays or values.objects or values.numbers.spans)
        if plain and is_open(values.strings):
            return Watch.ENDLESS | Watch.GROWS
        found = self._spellings(formula) | Watch.CHECK
        if self.has(formula, ENDLESS):
            found |= Watch.ENDLESS
        grows = all(map(self._array_grows, values.arrays)) and all(map(self._object_grows, values.objects))
        return found & ~Watch.SEARCH | Watch.GROWS if grows else found

    def _spellings(self, items: Formula) -> Watch:
        """VALUE where equal values may have several texts, SEARCH where that is not only by undeclared names."""
        found, seen, waiting = Watch.ITEMS, {items}, [items]
        while waiting:
            formula = waiting.pop()
            values = self._expander.values(formula)
            if not all(map(_is_spelled_once, values.numbers.spans)):
                found |= Watch.VALUE if formula == items else Watch.VALUE | Watch.SEARCH
            if not _is_ordered(values.objects):
                found |= Watch.VALUE | Watch.SEARCH
            below = {formula for part in values.arrays for formula in (*part.prefix, part.rest)}
            for part in values.objects:
                others = {value for _, value in part.others(self._expander.budget) if self._expander.possible(value)}
                found |= Watch.VALUE if others else Watch.ITEMS
                below |= {*part.table.values(), *(part.value(name) for name in part.required), *others}
            waiting += below - seen
            seen |= below
        return found

    def _array_grows(self, part: ArrayPart) -> bool:
        return part.high is None and not part.contains and self.has(part.rest, ENDLESS if part.unique else 1)

    def _object_grows(self, part: ObjectPart) -> bool:
        return part.high is None and not part.some and self._undeclared(part, ENDLESS) >= ENDLESS


def _is_ordered(parts: tuple[ObjectPart, ...]) -> bool:
    """No two parts name two properties in different orders."""
    before: set[tuple[str, str]] = set()
    for part in parts:
        names = [*part.table, *sorted(part.required - part.table.keys())]
        before |= {(first, second) for i, first in enumerate(names) for second in names[i + 1 :]}
    return not any((second, first) in before for first, second in before)


def num_strings(strings: Strings, enough: int) -> int:
    """How many strings there are, at most `enough`; at least as many as this where pieces overlap."""
    return max((_num_texts(piece, enough) for piece in strings.pieces), default=0)


def is_open(strings: Strings) -> bool:
    """Every beginning of a string can be ended in any number of ways."""
    return bool(strings.pieces) and all(piece.high is None and _is_loop(piece.dfa) for piece in strings.pieces)


def _is_loop(dfa: Dfa) -> bool:
    return dfa.num_states == 1 and dfa.targets[0] == {0}


def _num_texts(piece: Piece, enough: int) -> int:
    """Counts texts by length, each state's beginnings up to `enough`."""
    found, counts = 0, {0: 1}
    last = _MAX_LENGTH if piece.high is None else min(piece.high, _MAX_LENGTH)
    for length in range(last + 1):
        if length >= piece.low:
            found += sum(count for state, count in counts.items() if piece.dfa.accepting[state])
        if found >= enough or not counts:
            break
        following: dict[int, int] = {}
        for state, count in counts.items():
            for ranges, target in piece.dfa.edges[state]:
                wide = sum(high - low + 1 for low, high in ranges)
                following[target] = min(enough, following.get(target, 0) + count * wide)
        counts = following
    return min(found, enough)


def _num_numbers(numbers: Numbers, enough: int) -> int:
    listed = numbers.finite(enough)
    return enough if listed is None else min(enough, len(listed))


def _is_spelled_once(span: Span) -> bool:
    whole = span.step is not None and span.step.denominator == 1
    return whole or (span.low is not None and span.low == span.high)


def _product(sizes: Iterable[int], enough: int) -> int:
    result = 1
    for size in sizes:
        result = min(enough, result * size)
    return result
