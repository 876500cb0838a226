"""Grammar expressions -> EBNF text of xgrammar 0.2.9.

The rule `root` is never referred to (a self-recursive root gets masks that are too tight). Options and rules that can
produce nothing are dropped. Bounded repetition of anything but a character class becomes a chain of rules: repeating a
rule or a group costs milliseconds to seconds per token.
"""

from __future__ import annotations

from guided_grammar.errors import LimitExceeded, UnsatisfiableConstraint
from guided_grammar.ir import NOTHING, Alt, Chars, Dispatch, Expr, Ref, Repeat, Rules, Seq, Text, alt, repeat, seq
from guided_grammar.limits import DEFAULT_LIMITS, Limits
from guided_grammar.place import Place
from guided_grammar.ranges import MAX_SCALAR, Ranges, size
from guided_grammar.reach import Reach, reach

_DIGITS, _HEX_DIGITS = 10, 22
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}


def to_ebnf(rules: Rules, root: Expr, limits: Limits = DEFAULT_LIMITS, found: Reach | None = None) -> str:
    """EBNF whose language is that of `root`. Raises UnsatisfiableConstraint if empty, LimitExceeded if too long.

    found: what `reach` says of the two, where it is known already.
    """
    return _Emitter(rules, found or reach(rules, root), limits).run(root)


def _prune(expr: Expr, done: frozenset[str]) -> Expr:
    match expr:
        case Ref(name):
            return expr if name in done else NOTHING
        case Seq(items):
            return seq(*(_prune(item, done) for item in items))
        case Alt(options):
            return alt(*(_prune(option, done) for option in options))
        case Repeat(item, low, high):
            return repeat(_prune(item, done), low, high)
        case Dispatch(tags, loop, excludes):
            dead = tuple(tag for tag, ref in tags if ref.name not in done)
            return Dispatch(tuple(t for t in tags if t[1].name in done), loop, (*excludes, *dead))
    return expr


class _Emitter:
    def __init__(self, rules: Rules, found: Reach, limits: Limits) -> None:
        self._rules, self._reach, self._limits = rules, found, limits
        self._seen: set[str] = set()
        self._queue: list[tuple[str, Expr]] = []
        self._lines: list[str] = []
        self._size = 0
        self._sizes: dict[Place, int] = {}
        self._place = Place()
        self._num_chained = 0

    def run(self, root: Expr) -> str:
        if _prune(root, self._reach.alive) == NOTHING:
            raise UnsatisfiableConstraint("no output can match")
        self._queue.append(("root", root))
        while self._queue:
            name, body = self._queue.pop()
            self._place = self._rules.origin(name)
            kept = _prune(body, self._reach.alive) if self._reach.dead else body
            self._line(name, self._write(kept, 0))
        return "".join(self._lines)

    def _write(self, expr: Expr, level: int) -> str:
        """`level`: 0 a whole body, 1 inside a sequence, 2 under a repetition sign."""
        match expr:
            case Text(value):
                return _quote(value) if level < 2 or len(value) < 2 else f"({_quote(value)})"
            case Chars(ranges):
                return _class(ranges, ranges[-1][1] == MAX_SCALAR)
            case Ref(name):
                return self._visit(name)
            case Seq(items):
                body = " ".join(self._write(item, 1) for item in items)
                return f"({body})" if level == 2 else body
            case Alt(options):
                body = " | ".join(self._write(option, 1) for option in options)
                return f"({body})" if level else body
            case Repeat(item, low, high):
                body = self._repeat(item, low, high)
                return f"({body})" if level == 2 else body
            case Dispatch(tags, loop, excludes):
                return self._dispatch(tags, loop, excludes)

    def _dispatch(self, tags: tuple[tuple[str, Ref], ...], loop: bool, excludes: tuple[str, ...]) -> str:
        parts = [f"({_quote(tag)}, {self._visit(ref.name)})" for tag, ref in tags]
        parts.append(f"loop_after_dispatch={str(loop).lower()}")
        if excludes:
            parts.append(f"excludes=({', '.join(map(_quote, excludes))})")
        return f"TagDispatch({', '.join(parts)})"

    def _visit(self, name: str) -> str:
        if name not in self._seen:
            self._seen.add(name)
            self._queue.append((name, self._rules.get(Ref(name))))
        return name

    def _repeat(self, item: Expr, low: int, high: int | None) -> str:
        if isinstance(item, Text) and len(item.text) == 1:
            item = Chars(((ord(item.text), ord(item.text)),))
        if isinstance(item, Chars):
            return _class(item.ranges, _repeats_fast_negated(item.ranges, low, high)) + _bounds(low, high)
        if high is None and low <= 1:
            return self._write(item, 2) + "*+"[low]
        return self._chain(item, low, high)

    def _chain(self, item: Expr, low: int, high: int | None) -> str:
        """One rule per item, each the item and the rest; returns the name of the first."""
        names = [f"n-{self._num_chained + i}" for i in range(low if high is None else high)]
        self._num_chained += len(names)
        body = self._write(item, 2)
        tail = f"{body}*" if high is None else ""
        for i in reversed(range(len(names))):
            line = f"{body} {names[i + 1]}" if i + 1 < len(names) else f"{body} {tail}".rstrip()
            self._line(names[i], line if i < low else f'{line} | ""')
        return names[0]

    def _line(self, name: str, body: str) -> None:
        line = f"{name} ::= {body}\n"
        size = len(line.encode())
        self._size += size
        self._sizes[self._place] = self._sizes.get(self._place, 0) + size
        if self._size > self._limits.emitted_bytes:
            largest = max(self._sizes, key=lambda place: self._sizes[place])
            raise largest.blame(LimitExceeded("emitted grammar bytes", self._limits.emitted_bytes, None))
        self._lines.append(line)


def _repeats_fast_negated(ranges: Ranges, low: int, high: int | None) -> bool:
    """Counted repetition of all but small classes is fast only if negated: `[a-z0-9-]{1,63}` 8 against 260 ms."""
    counted = high not in (None, 1) or low > 1
    small = size(ranges) <= (_HEX_DIGITS if low == high else _DIGITS)
    return ranges[-1][1] == MAX_SCALAR or (counted and not small)


def _class(ranges: Ranges, negated: bool) -> str:
    if not negated:
        return "[" + "".join(_range(low, high) for low, high in ranges) + "]"
    gaps = zip((0, *(high + 1 for _, high in ranges)), (*(low - 1 for low, _ in ranges), MAX_SCALAR), strict=True)
    return "[^" + "".join(_range(low, high) for low, high in gaps if low <= high) + "]"


def _bounds(low: int, high: int | None) -> str:
    if high is None:
        return "*+"[low] if low <= 1 else f"{{{low},}}"
    if (low, high) == (0, 1):
        return "?"
    return f"{{{low}}}" if low == high else f"{{{low},{high}}}"


def _quote(value: str) -> str:
    """A string literal; NUL ends a literal early in xgrammar, so it is written as a class."""
    parts = ("".join(_char(c) for c in part) for part in value.split("\0"))
    return " [\\u0000] ".join(f'"{part}"' for part in parts)


def _char(char: str) -> str:
    return _ESCAPES.get(char) or (char if char.isprintable() else _code(ord(char)))


def _code(code: int) -> str:
    """Never `\\xNN`: xgrammar reads as many hex digits as follow it."""
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _class_char(code: int) -> str:
    char = chr(code)
    if char in "\\]-^[":
        return _code(code)
    return char if 0x20 < code < 0x7F else _code(code)


def _range(low: int, high: int) -> str:
    if low == high:
        return _class_char(low)
    return f"{_class_char(low)}-{_class_char(high)}"
