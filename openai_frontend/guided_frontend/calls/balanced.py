"""Steps over one value of nested brackets and quotes."""

from __future__ import annotations

from guided_frontend.calls.literal import QUOTES
from guided_frontend.calls.pieces import Reading
from guided_frontend.calls.source import Source


def balanced(source: Source, quotes: tuple[str, ...], ends: str) -> Reading[str | None]:
    """The text up to one of `ends` outside of brackets and quotes, None where it does not come."""
    start, depth = source.at, 0
    while True:
        quote = yield from source.first_of(quotes)
        if quote:
            source.at += len(quote)
            if not (yield from _string(source, quote)):
                return None
            continue
        char = yield from source.peek()
        if not char:
            return None
        if depth == 0 and char in ends:
            return source.since(start)
        depth += (char in "([{") - (char in ")]}")
        source.at += 1


def _string(source: Source, quote: str) -> Reading[bool]:
    """From inside a string to after its end."""
    while not (yield from source.accept(quote)):
        char = yield from source.take()
        if char == "\\" and quote in QUOTES:
            char = yield from source.take()
        if not char:
            return False
    return True
