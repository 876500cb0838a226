"""Loops over small alternatives as rules of their own: `(a | b)* c` is `l ::= a l | b l | c`, which has quick masks.

A mask inside of a repeated rule or group is a walk over the vocabulary at every token, some 70 ms where it has 151,669.
"""

from __future__ import annotations

from collections.abc import Mapping

from guided_grammar.ir import Alt, Chars, Expr, Ref, Repeat, Rules, Seq, Text, alt, refs, repeat, seq

_MOST_NODES = 48
_MOST_LOW = 4


class Loops:
    """Moves the rules of one grammar to `target`; the language of each stays what it is."""

    def __init__(self, source: Rules, target: Rules) -> None:
        self._bodies = {name: source.get(Ref(name)) for name in source}
        self._target = target
        self._moved = {name: target.reserve("g") for name in source}
        self._small = self._find_small()

    def run(self, root: Ref) -> Ref:
        """The moved rule that was `root`."""
        for name, body in self._bodies.items():
            self._target.define(self._moved[name], self._of(body))
        return self._moved[root.name]

    def _find_small(self) -> Mapping[str, int]:
        """Nodes of the rules that come to few ones with everything that they refer to."""
        sizes: dict[str, int] = {}
        before = -1
        while before < len(sizes):
            before = len(sizes)
            for name, body in self._bodies.items():
                if name not in sizes and all(inner in sizes for inner in refs(body)):
                    size = _size(body) + sum(sizes[inner] for inner in refs(body))
                    if size <= _MOST_NODES:
                        sizes[name] = size
        return sizes

    def _of(self, expr: Expr) -> Expr:
        match expr:
            case Ref(name):
                return self._moved[name]
            case Alt(options):
                return alt(*map(self._of, options))
            case Seq(items):
                return self._sequence(items)
            case Repeat():
                return self._sequence((expr,))
        return expr

    def _sequence(self, items: tuple[Expr, ...]) -> Expr:
        """From the end on: what follows a loop is a way out of it."""
        behind: list[Expr] = []
        for item in reversed(items):
            options = self._loop(item) if isinstance(item, Repeat) else ()
            if isinstance(item, Repeat) and options:
                loop = self._target.reserve("g")
                after = seq(*reversed(behind))
                self._target.define(loop, alt(*(seq(option, loop) for option in options), after))
                behind = [seq(*[alt(*options)] * item.low, loop)]
            elif isinstance(item, Repeat):
                behind.append(repeat(self._of(item.item), item.low, item.high))
            else:
                behind.append(self._of(item))
        return seq(*reversed(behind))

    def _loop(self, item: Repeat) -> tuple[Expr, ...]:
        """What is repeated without end, by alternatives that begin with a character; () for any other loop."""
        if item.high is not None or item.low > _MOST_LOW:
            return ()
        written = self._written(item.item)
        options = written.options if isinstance(written, Alt) else ()
        return options if all(map(_begins, options)) and any(isinstance(o, Chars) for o in options) else ()

    def _written(self, expr: Expr) -> Expr:
        """The expression with its small rules written out where they stand alone or begin an alternative."""
        if isinstance(expr, Ref) and expr.name in self._small:
            return self._written(self._bodies[expr.name])
        if isinstance(expr, Alt):
            return alt(*map(self._written, expr.options))
        return self._of(expr)


def _begins(option: Expr) -> bool:
    """Whether an alternative surely reads a character first: otherwise the loop would come back without reading."""
    first = option.items[0] if isinstance(option, Seq) else option
    return isinstance(first, Chars) or (isinstance(first, Text) and bool(first.text))


def _size(expr: Expr) -> int:
    match expr:
        case Text() | Chars() | Ref():
            return 1
        case Seq(items) | Alt(items):
            return 1 + sum(map(_size, items))
        case Repeat(item):
            return 1 + _size(item)
    return _MOST_NODES + 1
