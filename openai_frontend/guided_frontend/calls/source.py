"""Text as it arrives, and the steps of reading it.

Every step is a generator that yields None where it cannot decide yet, so what is read does not depend on where the text
was cut.
"""

from __future__ import annotations

from collections.abc import Iterable

from guided_frontend.calls.pieces import Reading

BLANKS = " \t\n\r"
_KEPT = 4096


class Source:
    """`at`: the reading position, which may be set back to a place noted since the last `forget`."""

    def __init__(self) -> None:
        self._text = ""
        self.at = 0
        self.ended = False

    def add(self, text: str) -> None:
        self._text += text

    def forget(self) -> None:
        """What was read is not needed again. Dropped now and then: dropping every character would copy the rest."""
        if self.at > _KEPT:
            self._text, self.at = self._text[self.at :], 0

    def since(self, start: int) -> str:
        """The text from `start` to here."""
        return self._text[start : self.at]

    def peek(self) -> Reading[str]:
        """The next character, "" at the end."""
        while self.at >= len(self._text):
            if self.ended:
                return ""
            yield None
        return self._text[self.at]

    def run(self, stops: str) -> str:
        """Step over what is there up to one of `stops`; it may go on."""
        start, end = self.at, len(self._text)
        for stop in stops:
            found = self._text.find(stop, start, end)
            end = found if found >= 0 else end
        self.at = end
        return self._text[start:end]

    def take(self) -> Reading[str]:
        char = yield from self.peek()
        self.at += len(char)
        return char

    def starts(self, mark: str) -> Reading[bool]:
        """Whether the text goes on with `mark`; never true for the empty one."""
        while True:
            have = self._text[self.at : self.at + len(mark)]
            if have == mark:
                return mark != ""
            if self.ended or not mark.startswith(have):
                return False
            yield None

    def accept(self, mark: str) -> Reading[bool]:
        """Step over `mark` where the text goes on with it."""
        found = yield from self.starts(mark)
        self.at += len(mark) if found else 0
        return found

    def first_of(self, marks: Iterable[str]) -> Reading[str]:
        """The first of `marks` that the text goes on with, "" for none."""
        for mark in marks:
            if (yield from self.starts(mark)):
                return mark
        return ""

    def skip(self, chars: str = BLANKS) -> Reading[None]:
        """Step over any of `chars`."""
        while True:
            char = yield from self.peek()
            if not char or char not in chars:
                return
            self.at += 1

    def accept_after_blanks(self, mark: str) -> Reading[bool]:
        """Step over blanks and `mark` where they come next, else stay."""
        start = self.at
        yield from self.skip()
        found = yield from self.accept(mark)
        self.at = self.at if found else start
        return found

    def close(self, mark: str) -> Reading[bool]:
        """Step over blanks and `mark`, or as much of it as the text ends with."""
        start = self.at
        yield from self.skip()
        found = yield from self.accept(mark)
        if not found:
            self.at = len(self._text) if self.ended and mark.startswith(self._text[self.at :]) else start
        return found

    def until(self, marks: tuple[str, ...], limit: int | None = None) -> Reading[str | None]:
        """The text up to the first of `marks`, which is not stepped over.

        None where it does not come, within `limit` characters; the position is then undefined.
        """
        start, firsts = self.at, {mark[0] for mark in marks}
        while True:
            char = yield from self.peek()
            if not char or (limit is not None and self.at - start > limit):
                return None
            if char in firsts and (yield from self.first_of(marks)):
                return self.since(start)
            self.at += 1
