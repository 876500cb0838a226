"""Reads tool calls out of generated text as it arrives, in the markup that a format row states.

Results do not depend on where the text was cut. What cannot be read as a call comes back as content; of a call that
was already passed on, the arguments stay cut off where they could no longer be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from guided_grammar.formats import CallStyle, ToolFormat

from guided_frontend.calls import READERS, harmony
from guided_frontend.calls.pieces import (
    CallArguments,
    CallEnd,
    CallStart,
    Piece,
    Reading,
    ReasoningPiece,
    TextPiece,
    merged,
)
from guided_frontend.calls.source import BLANKS, Source

__all__ = ["CallArguments", "CallEnd", "CallParser", "CallStart", "Piece", "ReasoningPiece", "TextPiece"]


class CallParser:
    """Content and calls of one answer. `num_calls`: complete ones.

    schemas: the parameters of each tool by its name, for styles whose values are typed by them.
    triggers: the texts that begin calls within content.
    """

    def __init__(self, row: ToolFormat, schemas: Mapping[str, Any] | None = None) -> None:
        self._row, self._schemas = row, schemas or {}
        self._source, self._content = Source(), _Content()
        self.triggers = tuple(mark for mark in (row.trigger, *row.also) if mark)
        self._opening = row.marks(row.prefix + row.lead)
        self._call_closing, self._closing = row.marks(row.call_close), row.marks(row.close + row.suffix)
        self._reading = self._answer()
        self._num_started = self.num_calls = 0

    def feed(self, text: str) -> list[Piece]:
        """What `text` adds."""
        self._source.add(text)
        return merged(self._read())

    def finish(self) -> list[Piece]:
        """What was still held back when the answer ended."""
        self._source.ended = True
        return merged([*self._read(), *self._content.rest()])

    def _read(self) -> Iterator[Piece]:
        for piece in self._reading:
            if piece is None:
                return
            self._num_started += isinstance(piece, CallStart)
            if isinstance(piece, CallEnd):
                self.num_calls += 1
                self._content.call_ended()
            yield piece

    def _answer(self) -> Reading[None]:
        source = self._source
        if self._row.style is CallStyle.HARMONY:
            return (yield from harmony.read_answer(source))
        if self._row.has_calls and not self._row.trigger:
            yield from source.skip()
            if not (yield from self._section(0)):
                source.at = 0
        firsts = "".join({trigger[0] for trigger in self.triggers})
        while (char := (yield from source.peek())) != "":
            found = yield from source.first_of(self.triggers)
            if found and (yield from self._section(source.at)):
                continue
            source.at += len(found or char)
            yield from self._content.add((found or char) + source.run(firsts))
            source.forget()

    def _section(self, start: int) -> Reading[bool]:
        """Calls from their opening markup on, and the markup after them.

        False, and the position `start`, where no call even began. After a call that could not be read to its end the
        position is where it became unreadable.
        """
        source, mark, is_any = self._source, start, False
        for opening in self._opening:
            yield from source.accept_after_blanks(opening)
        if (yield from self._is_empty(start)):
            return True
        if self._row.needs_call_open and not source.since(start).rstrip().endswith(self._row.call_open.strip()):
            source.at = start
            return False
        while True:
            num_started = self._num_started
            yield from source.skip()
            if not (yield from self._call()):
                break
            is_any = True
            is_closed = yield from self._closed()
            mark = source.at
            if is_closed or not (yield from self._goes_on()):
                break
        if self._num_started > num_started and self._num_started > self.num_calls:
            return True
        source.at = mark
        return is_any

    def _is_empty(self, start: int) -> Reading[bool]:
        """Step over the rest of a section that holds nothing, or that the answer ends in."""
        source = self._source
        if source.at == start:
            return False
        at = source.at
        for closing in self._closing:
            if (yield from source.accept_after_blanks(closing)):
                return True
        yield from source.skip()
        is_end = (yield from source.peek()) == ""
        source.at = source.at if is_end else at
        return is_end

    def _call(self) -> Reading[bool]:
        return (yield from READERS[self._row.style](self._source, self._row, self._schemas))

    def _closed(self) -> Reading[bool]:
        """Step over the markup after a call; whether the section ends with it."""
        for closing in self._call_closing:
            yield from self._source.close(closing)
        is_closed = False
        for closing in self._closing:
            is_closed |= yield from self._source.close(closing)
        return is_closed

    def _goes_on(self) -> Reading[bool]:
        """Whether another call of this section follows; steps over what parts them."""
        opening = self._row.call_open.strip()
        if opening in ("", self._row.trigger):
            opening = self._row.between.strip() or self._row.before_name
        return (yield from self._source.accept_after_blanks(opening))


class _Content:
    """Blanks wait: those around calls belong to the markup, unless they part two stretches of content. Line breaks
    before a call always do."""

    def __init__(self) -> None:
        self._blanks = ""
        self._has_text = self._has_calls = False

    def add(self, text: str) -> Iterator[TextPiece]:
        inner = text.strip(BLANKS)
        start = text.find(inner[0]) if inner else len(text)
        self._blanks += text[:start]
        if inner:
            lead = self._blanks if self._has_text or not self._has_calls else ""
            self._blanks, self._has_text = text[start + len(inner) :], True
            yield TextPiece(lead + inner)

    def call_ended(self) -> None:
        is_kept = self._has_text and "\n" not in self._blanks
        self._blanks, self._has_calls = self._blanks if is_kept else "", True

    def rest(self) -> list[TextPiece]:
        """The last blanks of an answer without calls."""
        blanks, self._blanks = self._blanks, ""
        return [TextPiece(blanks)] if blanks and not self._has_calls else []
