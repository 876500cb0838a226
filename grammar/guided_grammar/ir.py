"""The small grammar language that every constraint compiles to.

Expr = Text | Chars | Seq | Alt | Repeat | Ref | Dispatch. Build with `text`, `chars`, `seq`, `alt`, `repeat`, `opt`:
they normalise, so that equal languages written the same way are equal values. The constructors do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from guided_grammar.place import Place, Places
from guided_grammar.ranges import Ranges, normalise, union


@dataclass(frozen=True)
class Text:
    """Exactly these Unicode scalar values."""

    text: str


@dataclass(frozen=True)
class Chars:
    """One scalar value out of sorted, disjoint, inclusive ranges (never empty: that is `NOTHING`)."""

    ranges: Ranges


@dataclass(frozen=True)
class Seq:
    items: tuple[Expr, ...]


@dataclass(frozen=True)
class Alt:
    options: tuple[Expr, ...]


@dataclass(frozen=True)
class Repeat:
    """`low` to `high` times `item`; `high` None is unbounded."""

    item: Expr
    low: int
    high: int | None


@dataclass(frozen=True)
class Ref:
    """The rule of this name in a `Rules`."""

    name: str


@dataclass(frozen=True)
class Dispatch:
    """Free text (any bytes) in which each trigger is followed by its rule, wherever it appears.

    tags: (trigger, rule of what follows it), triggers not empty. loop: free text goes on after a rule, else the text
    ends with it. excludes: texts that free text never holds.
    """

    tags: tuple[tuple[str, Ref], ...]
    loop: bool
    excludes: tuple[str, ...] = ()


Expr = Text | Chars | Seq | Alt | Repeat | Ref | Dispatch

EMPTY = Text("")
"""The language of the empty text only."""
NOTHING = Alt(())
"""The empty language."""


def text(value: str) -> Expr:
    return Text(value)


def chars(ranges: Iterable[tuple[int, int]]) -> Expr:
    """One character out of `ranges` (any order, overlaps allowed); surrogates are dropped."""
    clean = normalise(ranges)
    if not clean:
        return NOTHING
    if len(clean) == 1 and clean[0][0] == clean[0][1]:
        return Text(chr(clean[0][0]))
    return Chars(clean)


def seq(*items: Expr) -> Expr:
    """Concatenation: flattened, adjacent texts joined, `EMPTY` dropped, `NOTHING` absorbing."""
    flat: list[Expr] = []
    for item in items:
        for part in item.items if isinstance(item, Seq) else (item,):
            if part == NOTHING:
                return NOTHING
            if isinstance(part, Text) and flat and isinstance(flat[-1], Text):
                flat[-1] = Text(flat[-1].text + part.text)
            elif part != EMPTY:
                flat.append(part)
    if not flat:
        return EMPTY
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))


def _single(expr: Expr) -> Ranges | None:
    if isinstance(expr, Chars):
        return expr.ranges
    if isinstance(expr, Text) and len(expr.text) == 1:
        return ((ord(expr.text), ord(expr.text)),)
    return None


def alt(*options: Expr) -> Expr:
    """Union: flattened, duplicates dropped, one-character options joined to one class in the first one's place."""
    flat: dict[Expr, None] = {}
    single: Ranges = ()
    for option in options:
        for part in option.options if isinstance(option, Alt) else (option,):
            ranges = _single(part)
            if ranges is None:
                flat[part] = None
            else:
                single = union(single, ranges)
                flat[Chars(())] = None
    parts = [chars(single) if part == Chars(()) else part for part in flat]
    return parts[0] if len(parts) == 1 else Alt(tuple(parts))


def repeat(item: Expr, low: int, high: int | None) -> Expr:
    """`low` to `high` times `item`. Requires 0 <= low <= high."""
    if item == EMPTY or high == 0:
        return EMPTY
    if item == NOTHING:
        return EMPTY if low == 0 else NOTHING
    if (low, high) == (1, 1):
        return item
    return Repeat(item, low, high)


def opt(item: Expr) -> Expr:
    return alt(item, EMPTY)


def refs(expr: Expr) -> Iterator[str]:
    """Names of the rules that `expr` mentions directly, in order, repetitions kept."""
    stack: list[Expr] = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, Ref):
            yield node.name
        elif isinstance(node, Seq):
            stack.extend(reversed(node.items))
        elif isinstance(node, Alt):
            stack.extend(reversed(node.options))
        elif isinstance(node, Repeat):
            stack.append(node.item)
        elif isinstance(node, Dispatch):
            stack.extend(ref for _, ref in reversed(node.tags))


class Rules:
    """Named rules, the one owner of their names. Equal expressions added twice share one rule.

    places: says for what part of a constraint a rule is named, the first one where several share it.
    """

    def __init__(self, places: Places | None = None) -> None:
        self._places = places or Places()
        self._origins: dict[str, Place] = {}
        self._bodies: dict[str, Expr | None] = {}
        self._names: dict[Expr, Ref] = {}

    def add(self, expr: Expr, hint: str = "r") -> Ref:
        """A rule whose body is `expr`. `hint` starts its name: letters, digits, `_`, starting with a letter."""
        if isinstance(expr, Ref):
            return expr
        known = self._names.get(expr)
        if known is None:
            known = self._names[expr] = self.reserve(hint)
            self._bodies[known.name] = expr
        return known

    def reserve(self, hint: str = "r") -> Ref:
        """A name for a rule that is defined later (recursion)."""
        ref = Ref(f"{hint}_{len(self._bodies)}")
        self._bodies[ref.name] = None
        self._origins[ref.name] = self._places.current
        return ref

    def define(self, ref: Ref, expr: Expr) -> None:
        """Give a reserved rule its body, once."""
        assert self._bodies[ref.name] is None, ref.name
        self._bodies[ref.name] = expr

    def get(self, ref: Ref) -> Expr:
        """The body of a defined rule."""
        body = self._bodies[ref.name]
        assert body is not None, ref.name
        return body

    def origin(self, name: str) -> Place:
        """The part of the constraint that a rule was first named for, of a name that is no rule's the current one."""
        return self._origins.get(name, self._places.current)

    def __len__(self) -> int:
        return len(self._bodies)

    def __iter__(self) -> Iterator[str]:
        return iter(self._bodies)
