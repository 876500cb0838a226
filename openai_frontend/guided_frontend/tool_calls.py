"""Reads tool calls out of generated text as it arrives, in the markup that a format row states.

Results do not depend on where the text was cut: characters are taken one by one. What cannot be read as a call comes
back as content.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from guided_grammar.formats import ToolFormat

from guided_frontend.json_scan import BLANKS, At, JsonScanner


@dataclass(frozen=True)
class TextPiece:
    """Content outside calls."""

    text: str


@dataclass(frozen=True)
class CallStart:
    """A call began; its name is whole."""

    name: str


@dataclass(frozen=True)
class CallArguments:
    """More of the running call's arguments: the pieces joined are a prefix of a JSON object."""

    text: str


@dataclass(frozen=True)
class CallEnd:
    """The running call is complete."""


Piece = TextPiece | CallStart | CallArguments | CallEnd


class _State(Enum):
    TEXT = auto()
    CALL = auto()
    CLOSE = auto()


class CallParser:
    """Content and calls of one answer. `num_calls`: complete ones."""

    def __init__(self, row: ToolFormat) -> None:
        self._row = row
        self._close = row.call_close.strip()
        self._state = _State.TEXT
        self._held = ""  # the trigger or close marker as far as it has appeared
        self._blanks = ""  # blanks that are content only if content follows
        self._reader = JsonCallReader(row)
        self._has_text = False
        self.num_calls = 0

    def feed(self, text: str) -> list[Piece]:
        """What `text` adds."""
        return _merged(self._take(text))

    def finish(self) -> list[Piece]:
        """What was still held back when the answer ended."""
        left = list(self._give_up()) if self._state is _State.CALL and not self._reader.started else []
        left += self._content(self._held) if self._state is _State.TEXT else []
        if self._blanks and not self.num_calls and self._state is _State.TEXT:
            left.append(TextPiece(self._blanks))
        self._held = self._blanks = ""
        return _merged(iter(left))

    def _take(self, text: str) -> Iterator[Piece]:
        for char in text:
            if self._state is _State.TEXT:
                yield from self._in_text(char)
            elif self._state is _State.CLOSE:
                yield from self._in_close(char)
            else:
                yield from self._in_call(char)

    def _in_text(self, char: str) -> Iterator[Piece]:
        self._held += char
        while self._held and not self._row.trigger.startswith(self._held):
            first, self._held = self._held[0], self._held[1:]
            yield from self._content(first)
        if self._held == self._row.trigger:
            self._held, self._state, self._reader = "", _State.CALL, JsonCallReader(self._row)

    def _content(self, text: str) -> Iterator[Piece]:
        """Blanks wait: those around calls belong to the markup, unless they part two stretches of content."""
        for char in text:
            if char in BLANKS:
                self._blanks += char
                continue
            lead = self._blanks if self._has_text or not self.num_calls else ""
            self._blanks, self._has_text = "", True
            yield TextPiece(lead + char)

    def _in_call(self, char: str) -> Iterator[Piece]:
        yield from self._reader.feed(char)
        if self._reader.failed:
            yield from self._give_up()
        elif self._reader.done:
            self.num_calls += 1
            self._state, self._blanks = _State.CLOSE, ""
            yield CallEnd()

    def _give_up(self) -> Iterator[Piece]:
        """The text after the trigger was no call: it is content, and may itself hold a trigger."""
        unread, started = self._reader.text, self._reader.started
        self._state = _State.TEXT
        if not started:
            yield from self._content(self._row.trigger)
            yield from self._take(unread)

    def _in_close(self, char: str) -> Iterator[Piece]:
        if not self._held and char in BLANKS:
            return
        self._held += char
        if self._held == self._close:
            self._held, self._state = "", _State.TEXT
        elif not self._close.startswith(self._held):
            unread, self._held, self._state = self._held, "", _State.TEXT
            yield from self._take(unread)


class JsonCallReader:
    """One call of style "json": an object with a name and arguments, in either order, extra keys skipped."""

    def __init__(self, row: ToolFormat) -> None:
        self._name_key, self._argument_keys = row.name_key, {row.arguments_key, "arguments", "parameters"}
        self._scan = JsonScanner()
        self._chars: list[str] = []
        self.started = self.done = self.failed = False
        self._key = ""
        self._name: str | None = None
        self._arguments: str | None = None
        self._start = -1
        self._sent = -1

    @property
    def text(self) -> str:
        """All that was read."""
        return "".join(self._chars)

    def _slice(self, start: int, end: int | None = None) -> str:
        return "".join(self._chars[start:end])

    def feed(self, char: str) -> Iterator[Piece]:
        """Sets `done` at the object's closing brace, `failed` when the text cannot be a call."""
        before, depth, was_key = self._scan.at, self._scan.depth, self._scan.in_key
        self._chars.append(char)
        if not self._scan.feed(char) or (depth == 0 and char not in BLANKS + "{"):
            self.failed = True
            return
        if depth == 1:
            yield from self._at_top(char, before, was_key)
        elif self._scan.depth == 1 and depth == 2:
            yield from self._value_ended(len(self._chars))
        if self._streams():
            yield from self._send(len(self._chars))

    def _at_top(self, char: str, before: At, was_key: bool) -> Iterator[Piece]:
        end = len(self._chars)
        if (before in (At.KEY, At.KEY_OR_END) and char == '"') or (before is At.VALUE and char not in BLANKS):
            self._start = end - 1
        elif was_key and self._scan.at is At.COLON and before is At.STRING:
            self._key, self._start = json.loads(self._slice(self._start)), -1
        elif self._start >= 0 and before is At.SCALAR and self._scan.at is not At.SCALAR:
            yield from self._value_ended(end - 1)
        elif self._start >= 0 and before is At.STRING and self._scan.at is At.AFTER:
            yield from self._value_ended(end)
        if self._scan.at is At.DONE:
            yield from self._object_ended()

    def _value_ended(self, end: int) -> Iterator[Piece]:
        value, start, self._start = self._slice(self._start, end), self._start, -1
        if self._key == self._name_key and self._name is None:
            self._name = _string(value)
            self.failed = self._name is None
        elif self._key in self._argument_keys and self._arguments is None:
            self._arguments = _object_text(value)
            self.failed = self._arguments is None
            if self._sent >= 0:
                yield from self._send(end)
            self._sent = start if self._sent < 0 else self._sent
        if not self.started and self._name is not None and self._arguments is not None and not self.failed:
            yield from self._start_call()
            yield CallArguments(self._arguments)

    def _streams(self) -> bool:
        """Whether the running value is the arguments object and its pieces can be sent already."""
        here = self._key in self._argument_keys and self._arguments is None and self._start >= 0
        if not here or self._scan.depth < 2 or self._name is None or self._chars[self._start] != "{":
            return False
        if self._sent < 0:
            self._sent = self._start
        return True

    def _send(self, end: int) -> Iterator[Piece]:
        if not self.started:
            yield from self._start_call()
        if end > self._sent:
            yield CallArguments(self._slice(self._sent, end))
        self._sent = end

    def _start_call(self) -> Iterator[Piece]:
        self.started = True
        yield CallStart(self._name or "")

    def _object_ended(self) -> Iterator[Piece]:
        if self._name is None:
            self.failed = True
            return
        if not self.started:
            yield from self._start_call()
            yield CallArguments("{}")
        self.done = True


def _string(value: str) -> str | None:
    decoded = json.loads(value)
    return decoded if isinstance(decoded, str) and decoded else None


def _object_text(value: str) -> str | None:
    """The JSON text of an arguments object, which may itself be written as a string; null means none."""
    decoded = json.loads(value)
    if isinstance(decoded, dict):
        return value
    if decoded is None:
        return "{}"
    try:
        return decoded if isinstance(json.loads(decoded), dict) else None
    except (TypeError, ValueError, RecursionError):
        return None


def _merged(pieces: Iterator[Piece]) -> list[Piece]:
    """Neighbours of one kind joined, so that one chunk of text makes few deltas."""
    joined: list[Piece] = []
    for piece in pieces:
        last = joined[-1] if joined else None
        if isinstance(piece, TextPiece) and isinstance(last, TextPiece):
            joined[-1] = TextPiece(last.text + piece.text)
        elif isinstance(piece, CallArguments) and isinstance(last, CallArguments):
            joined[-1] = CallArguments(last.text + piece.text)
        else:
            joined.append(piece)
    return joined
