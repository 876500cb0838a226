"""At every position of random walks the mask is exactly the tokens whose bytes keep a valid prefix.

The reference knows no xgrammar: it runs the grammar expressions themselves, byte by byte, as sets of remainders.
"""

from __future__ import annotations

import random
from functools import cache

import numpy as np
from guided_grammar.emit import to_ebnf
from guided_grammar.errors import UnsatisfiableConstraint
from guided_grammar.ir import Alt, Chars, Expr, Ref, Repeat, Rules, Seq, Text, alt, chars, repeat, seq, text
from guided_grammar.reach import reach
from guided_grammar.session import MaskEngine, Session
from guided_grammar.vocabulary import Vocabulary

EOS = 256
WORDS = ["aa", "ab", "ba", "bb", "aba", "abb", "}}", "{{", "é", "aé", "éb", "日a", "[a", "a]", "]]", "ab}", "bbbb"]
PARTS = (b"a\xc3", b"\xa9b", b"\xe6\x97", b"\xa5")
TOKENS = (*(bytes([b]) for b in range(256)), b"", *(word.encode() for word in WORDS), *PARTS)
ENGINE = MaskEngine(Vocabulary(TOKENS, (EOS,)))
ALPHABET = "ab{}[]é日"


class TooAmbiguous(Exception):
    """The reference would have to follow too many readings at once."""


class Reference:
    """Derivatives of grammar expressions by bytes. A state is a set of stacks of expressions still to match."""

    def __init__(self, rules: Rules, root: Expr) -> None:
        self._rules = rules
        self.alive = reach(rules, root).alive
        self.start = frozenset({(root,)})
        self._step = cache(self._uncached_step)

    def after(self, state: frozenset[tuple[Expr | bytes, ...]], data: bytes) -> frozenset[tuple[Expr | bytes, ...]]:
        for byte in data:
            state = frozenset(rest for stack in state for rest in self._step(stack, byte))
            if len(state) > 60:
                raise TooAmbiguous
        return state

    def is_complete(self, state: frozenset[tuple[Expr | bytes, ...]]) -> bool:
        return any(self._empty(stack) for stack in state)

    def _empty(self, stack: tuple[Expr | bytes, ...]) -> bool:
        return any(not rest for rest in self._expanded(stack))

    def _uncached_step(self, stack: tuple[Expr | bytes, ...], byte: int) -> set[tuple[Expr | bytes, ...]]:
        found = set()
        for rest in self._expanded(stack):
            if not rest:
                continue
            head, tail = rest[0], rest[1:]
            if isinstance(head, bytes):
                if head[0] == byte:
                    found.add((head[1:], *tail) if len(head) > 1 else tail)
            elif isinstance(head, Chars):
                found |= {(e[1:], *tail) if len(e) > 1 else tail for e in _encodings(head) if e[0] == byte}
        return found

    def _expanded(self, stack: tuple[Expr | bytes, ...]) -> set[tuple[Expr | bytes, ...]]:
        """Stacks whose head reads a byte, and the empty one where nothing has to be read."""
        done: set[tuple[Expr | bytes, ...]] = set()
        seen = set()
        queue = [stack]
        while queue:
            now = queue.pop()
            if now in seen:
                continue
            seen.add(now)
            if len(seen) > 400 or len(now) > 40:
                raise TooAmbiguous
            if not now or isinstance(now[0], bytes | Chars):
                done.add(now)
                continue
            queue.extend(self._unfolded(now[0], now[1:]))
        return done

    def _unfolded(self, head: Expr | bytes, tail: tuple[Expr | bytes, ...]) -> list[tuple[Expr | bytes, ...]]:
        match head:
            case Text(value):
                return [(value.encode(), *tail) if value else tail]
            case Seq(items):
                return [(*items, *tail)]
            case Alt(options):
                return [(option, *tail) for option in options]
            case Ref():
                return [(self._rules.get(head), *tail)]
            case Repeat(item, low, high):
                more = (item, repeat(item, max(low - 1, 0), None if high is None else high - 1), *tail)
                return [more] if low else [more, tail]
        raise AssertionError(head)


@cache
def _encodings(members: Chars) -> tuple[bytes, ...]:
    return tuple(chr(c).encode() for low, high in members.ranges for c in range(low, high + 1))


def random_grammar(source: random.Random) -> tuple[Rules, Expr]:
    """A few rules over a small alphabet, recursion behind at least one character (so that the reference ends)."""
    rules = Rules()
    names = [rules.reserve("f") for _ in range(source.randint(1, 3))]

    def build(depth: int) -> Expr:
        kind = source.choice(["text", "text", "class", "seq", "alt", "repeat", "rule"] if depth else ["text", "class"])
        if kind == "text":
            return text("".join(source.choices(ALPHABET, k=source.randint(0, 3))))
        if kind == "class":
            return chars([(ord(c), ord(c)) for c in source.sample(ALPHABET, source.randint(1, 3))])
        if kind == "seq":
            return seq(*(build(depth - 1) for _ in range(source.randint(2, 3))))
        if kind == "alt":
            return alt(*(build(depth - 1) for _ in range(source.randint(2, 3))))
        if kind == "repeat":
            low = source.randint(0, 2)
            return repeat(build(depth - 1), low, source.choice([None, low + source.randint(1, 2)]))
        return seq(text(source.choice(ALPHABET)), source.choice(names))

    for name in names:
        rules.define(name, build(2))
    return rules, names[0]


def mask(session: Session) -> set[int]:
    bits = np.zeros((1, -(-len(TOKENS) // 32)), np.int32)
    assert session.fill(bits, 0)
    return set(np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little")).tolist())


def walk(source: random.Random, reference: Reference, session: Session) -> int:
    """Compare masks along one random answer; how many were compared."""
    state = reference.start
    for num_compared in range(8):
        legal = {i for i, data in enumerate(TOKENS) if data and _leads_on(reference, reference.after(state, data))}
        if reference.is_complete(state):
            legal.add(EOS)
        assert mask(session) == legal
        token_id = source.choice(sorted(legal))
        assert session.accept(token_id)
        if token_id == EOS:
            return num_compared + 1
        state = reference.after(state, TOKENS[token_id])
    return 8


def test_masks_equal_the_reference_along_random_walks() -> None:
    num_compared = 0
    for seed in range(250):
        source = random.Random(seed)
        rules, root = random_grammar(source)
        try:
            compiled = ENGINE.compile(to_ebnf(rules, root))
            for _ in range(3):
                num_compared += walk(source, Reference(rules, root), ENGINE.session(compiled))
        except (UnsatisfiableConstraint, TooAmbiguous):
            continue
    assert num_compared > 1000


def _leads_on(reference: Reference, state: frozenset[tuple[Expr | bytes, ...]]) -> bool:
    """Every rule of `random_grammar` that has a text keeps one; a stack through a rule without text is dead."""
    return any(all(_has_text(reference, part) for part in stack) for stack in state)


def _has_text(reference: Reference, part: Expr | bytes) -> bool:
    match part:
        case Seq(items):
            return all(_has_text(reference, item) for item in items)
        case Alt(options):
            return any(_has_text(reference, option) for option in options)
        case Repeat(item, low, _):
            return low == 0 or _has_text(reference, item)
        case Ref(name):
            return name in reference.alive
    return True
