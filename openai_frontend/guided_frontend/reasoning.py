"""Splits generated text into reasoning and answer at the markers of a format row."""

from __future__ import annotations

from guided_grammar.formats import Reasoning

from guided_frontend.calls.pieces import Reading, ReasoningPiece, TextPiece
from guided_frontend.calls.source import BLANKS, Source


class ReasoningSplitter:
    """Blanks just inside the markers and after the block are dropped.

    inside: the prompt already opened the block. triggers: texts that begin calls, where calls may also stand in place
    of a block that the prompt opened, or end a block in some formats; none where only its closer ends a block.
    """

    def __init__(self, markers: Reasoning, inside: bool, triggers: tuple[str, ...] = ()) -> None:
        self._markers, self._inside, self._triggers = markers, inside, triggers
        self._open, self._close = markers.open.strip(), markers.close.strip()
        self._pairs = {self._open: self._close, **dict(markers.also)}
        self._source = Source()
        self._reading = self._split()

    def feed(self, text: str) -> tuple[str, str]:
        """(reasoning, answer) that `text` adds."""
        self._source.add(text)
        reasoning, answer = [], []
        for piece in self._reading:
            if isinstance(piece, ReasoningPiece):
                reasoning.append(piece.text)
            elif isinstance(piece, TextPiece):
                answer.append(piece.text)
            else:
                break
        return "".join(reasoning), "".join(answer)

    def finish(self) -> tuple[str, str]:
        """What was still held back when the text ended."""
        self._source.ended = True
        return self.feed("")

    def _split(self) -> Reading[None]:
        source = self._source
        yield from source.skip()
        opened = yield from source.first_of(self._pairs)
        source.at += len(opened)
        if opened or self._inside:
            yield from self._thought(self._pairs.get(opened, self._close), is_first=True)
        else:
            source.at = 0
        in_calls = not self._markers.strays
        firsts = "" if in_calls else "".join({mark[0] for mark in (self._open, *self._markers.strays, *self._triggers)})
        while (char := (yield from source.peek())) != "":
            in_calls = in_calls or (yield from source.first_of(self._triggers)) != ""
            if not in_calls and (yield from source.accept(self._open)):
                yield from self._thought(self._close, is_first=False)
            elif in_calls or not (yield from self._stray()):
                source.at += 1
                yield TextPiece(char + source.run("" if in_calls else firsts))
            source.forget()

    def _stray(self) -> Reading[bool]:
        """Step over markup that means nothing. Within calls it may be part of a text."""
        found = yield from self._source.first_of(self._markers.strays)
        self._source.at += len(found)
        return found != ""

    def _thought(self, close: str, is_first: bool) -> Reading[None]:
        """From inside the block that `close` ends to the first character of the answer."""
        source, blanks = self._source, ""
        ends = "".join({mark[0] for mark in (close, *self._markers.interrupted_by)})
        yield from source.skip()
        if is_first and (yield from source.first_of(self._triggers)):
            return
        while (char := (yield from source.peek())) != "":
            if (yield from source.accept(close)):
                return (yield from source.skip())
            if self._triggers and (yield from source.first_of(self._markers.interrupted_by)):
                return
            source.at += 1
            text = blanks + char + source.run(ends)
            source.forget()
            kept = text.rstrip(BLANKS)
            blanks = text[len(kept) :]
            if kept:
                yield ReasoningPiece(kept)
