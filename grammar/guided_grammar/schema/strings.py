"""Sets of JSON string values: unions of (regular language, length interval), exact under and, or, not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

from guided_grammar import automata, regex
from guided_grammar.automata import Dfa
from guided_grammar.bounded import bounded
from guided_grammar.budget import Budget
from guided_grammar.coarse import coarse
from guided_grammar.ir import NOTHING, Expr, Rules, alt, seq
from guided_grammar.linear import to_expr
from guided_grammar.ranges import ALL
from guided_grammar.schema import formats
from guided_grammar.schema.json_text import QUOTE, JsonWriter, quoted

_WRITER = JsonWriter()
_MAX_LISTED = 32
_MAX_COUNTED = 16
_MAX_STATES, _MAX_EDGES = 3_000, 12_000
"""States and edges of an automaton times its bound on lengths, above which no grammar of both is small enough."""


@dataclass(frozen=True)
class Piece:
    """Texts of `dfa` with `low` to `high` code points (None: no bound)."""

    dfa: Dfa
    low: int = 0
    high: int | None = None

    def contains(self, value: str) -> bool:
        return self.low <= len(value) and (self.high is None or len(value) <= self.high) and self.dfa.contains(value)

    def trimmed(self) -> Piece | None:
        """The same set without a bound that the automaton implies; None when a bound alone shows it to be empty."""
        shortest, longest = self.dfa.min_length(), self.dfa.max_length()
        if shortest is None or (self.high is not None and shortest > self.high):
            return None
        if longest is not None and longest < self.low:
            return None
        high = None if self.high is not None and longest is not None and longest <= self.high else self.high
        return Piece(self.dfa, 0 if shortest >= self.low else self.low, high)

    @property
    def is_unbounded(self) -> bool:
        return (self.low, self.high) == (0, None)

    def materialised(self, budget: Budget) -> Dfa:
        """The set as one automaton."""
        if self.is_unbounded:
            return self.dfa
        return self.dfa.intersect(automata.repeated(ALL, self.low, self.high, budget), budget)

    def is_empty(self) -> bool:
        """Exact: steps through the sets of states after each length, which repeat after finitely many."""
        states = frozenset({0})
        seen: dict[frozenset[int], int] = {}
        length = 0
        while length < self.low:
            if not states:
                return True
            if states in seen:
                length = self.low - (self.low - length) % (length - seen[states])
                seen.clear()
                if length == self.low:
                    break
            seen[states] = length
            states = frozenset(t for state in states for t in self.dfa.targets[state])
            length += 1
        distance = self.dfa.distance(states)
        return distance is None or (self.high is not None and self.low + distance > self.high)


Pieces = tuple[Piece, ...]


@dataclass(frozen=True)
class Strings:
    """A set of decoded string values. Equal sets are usually, but not always, equal values.

    `pieces` are values that are known to belong to it, `wider` pieces hold all that do; None where they are the same.
    They differ only for a few formats that no automaton decides; a complement swaps them, so it never allows too much.
    """

    pieces: tuple[Piece, ...]
    wider: tuple[Piece, ...] | None = None
    ANY: ClassVar[Strings]
    NONE: ClassVar[Strings]

    @staticmethod
    def of(values: Iterable[str], budget: Budget | None = None) -> Strings:
        """Exactly these values; a value with a lone surrogate cannot be written and is left out."""
        return Strings(_simplified([Piece(automata.literals(values, budget or Budget()))]))

    @staticmethod
    def length(low: int, high: int | None) -> Strings:
        """Every value of `low` to `high` code points."""
        return Strings(_simplified([Piece(automata.ANY, low, high)]))

    @staticmethod
    def pattern(pattern: str, budget: Budget, path: str = "", *, keyword: str = "pattern") -> Strings:
        """The values that contain a match of an ECMAScript regex."""
        counted = regex.counted_class(pattern, budget, path, keyword=keyword)
        if counted is None:
            return Strings(_simplified([Piece(regex.search_language(pattern, budget, path, keyword=keyword))]))
        ranges, low, high = counted
        return Strings(_simplified([Piece(automata.repeated(ranges, 0, None, budget), low, high)]))

    @staticmethod
    def format(name: str, budget: Budget, path: str = "") -> Strings:
        """The strings of a format in `KNOWN_FORMATS`. Raises UnsupportedConstraint for one that is not enforced."""
        found = formats.language(name, path)
        budget.spend(found.dfa.num_edges, "format", path)
        pieces = _simplified([Piece(found.dfa, 0, found.high)])
        wider = _simplified([Piece(found.wider, 0, found.wider_high)])
        return Strings(pieces, None if wider == pieces else wider)

    @property
    def outer(self) -> tuple[Piece, ...]:
        return self.pieces if self.wider is None else self.wider

    def intersect(self, other: Strings, budget: Budget) -> Strings:
        if other.is_any():
            return self
        if self.is_any():
            return other
        return _paired(self, other, lambda a, b: _simplified(_meet(x, y, budget) for x in a for y in b))

    def union(self, other: Strings, budget: Budget) -> Strings:
        return _paired(self, other, lambda a, b: _simplified(_merged([*a, *b], budget)))

    def complement(self, budget: Budget) -> Strings:
        inside = _outside(self.outer, budget)
        return Strings(inside, None if self.wider is None else _outside(self.pieces, budget))

    def is_empty(self) -> bool:
        """Whether it is known that no value belongs to the set."""
        return not self.outer

    def is_any(self) -> bool:
        return self.pieces == Strings.ANY.pieces

    def contains(self, value: str) -> bool:
        return any(piece.contains(value) for piece in self.pieces)

    def finite(self, limit: int) -> tuple[str, ...] | None:
        """All values, sorted, when there are at most `limit`; None when there are more or they were not counted."""
        values: set[str] = set()
        for piece in self.outer:
            if piece.high is not None and piece.high > _MAX_COUNTED and not piece.dfa.is_finite():
                return None
            found = piece.materialised(Budget()).finite(limit)
            if found is None:
                return None
            values.update(found)
        return tuple(sorted(values)) if len(values) <= limit else None

    def emit(self, rules: Rules, budget: Budget) -> Expr:
        """The JSON texts of the values, quotes included, each value in its canonical spelling (`json_text`).

        With both a length bound and characters that need escapes, long values with many escapes may be left out.
        """
        return alt(*(_emit_piece(piece, rules, budget) for piece in self.pieces))


_EVERYTHING: Pieces = (Piece(automata.ANY),)
Strings.ANY = Strings(_EVERYTHING)
Strings.NONE = Strings(())


def _paired(a: Strings, b: Strings, combine: Callable[[Pieces, Pieces], Pieces]) -> Strings:
    exact = a.wider is None and b.wider is None
    return Strings(combine(a.pieces, b.pieces), None if exact else combine(a.outer, b.outer))


def _merged(pieces: list[Piece], budget: Budget) -> list[Piece]:
    """The automata without length bounds joined to one."""
    joined = automata.NOTHING
    for piece in pieces:
        if piece.is_unbounded:
            joined = piece.dfa if joined.is_empty() else joined.union(piece.dfa, budget)
    return [Piece(joined), *(piece for piece in pieces if not piece.is_unbounded)]


def _outside(pieces: Pieces, budget: Budget) -> Pieces:
    result = _EVERYTHING
    for piece in pieces:
        outside = [Piece(piece.dfa.complement(budget))]
        if piece.low > 0:
            outside.append(Piece(piece.dfa, 0, piece.low - 1))
        if piece.high is not None:
            outside.append(Piece(piece.dfa, piece.high + 1, None))
        result = _simplified(_meet(a, b, budget) for a in result for b in outside)
    return result


def _meet(a: Piece, b: Piece, budget: Budget) -> Piece:
    dfa = a.dfa if b.dfa.is_any() else b.dfa if a.dfa.is_any() else a.dfa.intersect(b.dfa, budget)
    high = b.high if a.high is None else a.high if b.high is None else min(a.high, b.high)
    return Piece(dfa, max(a.low, b.low), high)


def _simplified(pieces: Iterable[Piece]) -> Pieces:
    """Without empty pieces, without implied bounds, adjacent lengths of one automaton joined."""
    kept: list[Piece] = []
    for piece in pieces:
        trimmed = None if piece.high is not None and piece.high < piece.low else piece.trimmed()
        if trimmed is not None and not trimmed.is_empty():
            kept = _joined(kept, trimmed)
    return _EVERYTHING if _EVERYTHING[0] in kept else tuple(kept)


def _joined(kept: list[Piece], new: Piece) -> list[Piece]:
    rest: list[Piece] = []
    for old in kept:
        low, high = (old, new) if old.low <= new.low else (new, old)
        if old.dfa == new.dfa and (low.high is None or high.low <= low.high + 1):
            top = None if low.high is None or high.high is None else max(low.high, high.high)
            new = Piece(new.dfa, low.low, top)
        else:
            rest.append(old)
    return [*rest, new]


def _emit_piece(piece: Piece, rules: Rules, budget: Budget) -> Expr:
    dfa = piece.dfa
    shaped = formats.shape(dfa, piece.low, piece.high, rules)
    if shaped is not None:
        return shaped
    if dfa.num_states == 1 and len(dfa.edges[0]) == 1:
        ranges = dfa.edges[0][0][0]
        escape = _WRITER.escaped(ranges, rules)
        return seq(QUOTE, bounded(_WRITER.plain(ranges), escape, piece.low, piece.high, QUOTE, rules))
    listed = dfa.finite(_MAX_LISTED)
    if listed is not None:
        return alt(*(quoted(value) for value in listed if piece.contains(value)))
    if piece.high is not None and _is_large(dfa, piece.high):
        begun = formats.begun_shape(dfa, piece.low, piece.high, rules, budget)
        if begun is not None:
            return begun
        least = Piece(formats.common(dfa), piece.low).materialised(budget)
        found = coarse(least, piece.high, _WRITER, rules, budget)
        if found != NOTHING:
            return seq(QUOTE, found)
    return seq(QUOTE, to_expr(piece.materialised(budget), _WRITER, rules, budget))


def _is_large(dfa: Dfa, high: int) -> bool:
    return high * dfa.num_states > _MAX_STATES or high * sum(map(len, dfa.edges)) > _MAX_EDGES
