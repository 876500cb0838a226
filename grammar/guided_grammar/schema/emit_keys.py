"""Property names as JSON text, the colon included: what follows a name then never depends on where the name ended.

The blank after the colon is no part of a rule of names: a third of a vocabulary begins with a blank, and whether those
tokens go on as the value does would be asked one by one at every end of such a rule.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain

from guided_grammar.budget import Budget
from guided_grammar.errors import UnsupportedConstraint
from guided_grammar.ir import NOTHING, Expr, Ref, Rules, alt, chars, repeat, seq, text
from guided_grammar.ranges import Ranges, difference, normalise
from guided_grammar.schema.json_text import ESCAPED, PLAIN, JsonWriter, quoted
from guided_grammar.schema.objects import Keys

_WRITER = JsonWriter()
_COLON, _BLANK = text(": "), text(" ")
_END = text('":')
_LOWER = ("abcd", "efgh", "ijkl", "mnop", "qrst", "uvwxyz")
_OTHERS = (
    *("ABCDEF", "GHIJKL", "MNOPQR", "STUVWXYZ", "01234", "56789"),
    *("_", "-", ".", "$", "@", "/", " ", ":"),
)
BLOCKS = (*_LOWER, *_OTHERS)
_BLOCK_RANGES = {block: normalise((ord(char), ord(char)) for char in block) for block in BLOCKS}
_STATES = 16
_IN_BLOCKS = frozenset("".join(BLOCKS))
_BESIDES = difference(((0, 0x10FFFF),), normalise(pair for ranges in _BLOCK_RANGES.values() for pair in ranges))


def key_text(key: str, path: str = "") -> Expr:
    """A declared name. Raises UnsupportedConstraint for a lone surrogate, which has no UTF-8 text."""
    if any("\ud800" <= char <= "\udfff" for char in key):
        raise UnsupportedConstraint(f"holds a lone surrogate: {json.dumps(key)}", keyword="properties", path=path)
    return seq(quoted(key), _COLON)


class KeyWriter:
    """The rules of names that are not declared; one for each document, so that its objects share them."""

    def __init__(self, rules: Rules, budget: Budget) -> None:
        self.rules, self.budget = rules, budget
        self._free: Ref | None = None
        self._exits: dict[frozenset[str], Ref] = {}
        self._blocks: dict[Ranges, Ref] = {}

    def write(self, keys: Keys) -> Expr:
        """The names of an open class."""
        if not keys.strings.is_any():
            return seq(self.rules.add(keys.exact(self.budget).emit(self.rules, self.budget), "k"), _COLON)
        if not keys.without:
            return seq(text('"'), self.free, _BLANK)
        return seq(self.rules.add(_AllBut(self, keys.without).run(), "k"), _BLANK)

    @property
    def free(self) -> Ref:
        """Any characters and the end. Only a class may be repeated: a repeated rule costs milliseconds a token."""
        if self._free is None:
            self._free = self.rules.reserve("k")
            again = seq(_escape(ESCAPED, self.rules), self._free)
            self.rules.define(self._free, seq(repeat(chars(PLAIN), 0, None), alt(_END, again)))
        return self._free

    def leave(self, stay: frozenset[str]) -> Ref:
        """One character that is not in `stay`, then any name.

        A reference to a rule for each block of characters: those rules cost what most of a vocabulary costs, but the
        same few serve every name of every object. Rules of their own would cost that for each character of each name.
        """
        found = self._exits.get(stay)
        if found is None:
            found = self._exits[stay] = self.rules.add(alt(*self._outside(stay)), "k")
        return found

    def _outside(self, stay: frozenset[str]) -> Iterator[Ref]:
        for group in (_LOWER, _OTHERS):
            refs = [ref for block in group for ref in self._part(block, stay)]
            yield from [self.rules.add(alt(*refs), "k")] if stay.isdisjoint("".join(group)) else refs
        rest = _BESIDES if stay <= _IN_BLOCKS else difference(_BESIDES, _ranges(stay))
        yield self._block(rest)

    def _part(self, block: str, stay: frozenset[str]) -> list[Ref]:
        """The rule of what `stay` leaves of a block: one for the whole of it, else one for its single characters."""
        if stay.isdisjoint(block):
            return [self._block(_BLOCK_RANGES[block])]
        left = difference(_BLOCK_RANGES[block], _ranges(stay))
        return [self.rules.add(alt(*map(self._block, _singles(left))), "k")] if left else []

    def _block(self, ranges: Ranges) -> Ref:
        found = self._blocks.get(ranges)
        if found is None:
            char = alt(chars(difference(ranges, ESCAPED)), _escape(ranges, self.rules))
            found = self._blocks[ranges] = self.rules.add(seq(char, self.free), "k")
        return found


class _AllBut:
    """Names that are not listed: follow the listed names for as long as one of them may begin like this.

    A state is a set of beginnings of one length. Each costs about a bit for each token of the vocabulary, so that long
    lists share states: their beginnings of one length are kept apart in `width` sets only. A name is then left out when
    at each position it has a character that a listed name of the same set has there; a listed name never gets through.
    """

    def __init__(self, writer: KeyWriter, listed: frozenset[str]) -> None:
        self._writer, self._rules, self._listed = writer, writer.rules, listed
        self._next: dict[str, set[str]] = {"": set()}
        for name in sorted(listed):
            for i, char in enumerate(name):
                self._next.setdefault(name[:i], set()).add(char)
            self._next.setdefault(name, set())
        writer.budget.spend(4 * len(self._next), "properties")
        longest = max(map(len, listed))
        self._width = max(1, (_STATES + len(listed) // 4) // max(1, longest))
        self._end = self._rules.add(_END, "q")

    def run(self) -> Expr:
        levels: list[list[tuple[str, ...]]] = [[("",)]]
        while any(self._after(group) for group in levels[-1]):
            levels.append(self._grouped(levels[-1]))
        built: dict[str, Expr] = {}
        for level in reversed(levels):
            built = {start: rule for group in level for rule in [self._rule(group, built)] for start in group}
        return seq(text('"'), built[""])

    def _after(self, group: tuple[str, ...]) -> dict[str, list[str]]:
        """By next character, the beginnings that are one longer."""
        after: dict[str, list[str]] = {}
        for start in group:
            for char in sorted(self._next[start]):
                after.setdefault(char, []).append(start + char)
        return after

    def _grouped(self, level: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
        groups = [tuple(starts) for group in level for starts in self._after(group).values()]
        if len(groups) <= self._width:
            return groups
        size = -(-len(groups) // self._width)
        return [tuple(chain(*groups[i : i + size])) for i in range(0, len(groups), size)]

    def _rule(self, group: tuple[str, ...], longer: dict[str, Expr]) -> Expr:
        after = self._after(group)
        options: list[Expr] = [
            self._rules.add(seq(_char(char), longer[starts[0]]), "k") for char, starts in after.items()
        ]
        options.append(self._writer.leave(frozenset(after)))
        if self._listed.isdisjoint(group):
            options.append(self._end)
        return self._rules.add(alt(*options), "k")


def _ranges(text: Iterable[str]) -> Ranges:
    return normalise((ord(char), ord(char)) for char in text)


def _singles(ranges: Ranges) -> list[Ranges]:
    return [((code, code),) for low, high in ranges for code in range(low, high + 1)]


def _char(char: str) -> Expr:
    return text(json.dumps(char, ensure_ascii=False)[1:-1])


def _escape(ranges: Ranges, rules: Rules) -> Expr:
    """The characters of `ranges` that are written with a backslash."""
    return _WRITER.escaped(ranges, rules) or NOTHING
