"""Reading an answer's bytes: which watched containers are open, what they hold, where in an item the text stands."""

from __future__ import annotations

import re
from dataclasses import dataclass

from guided_grammar.watch.frame import Frame, Phase
from guided_grammar.watch.shadow import Mark, Shadow
from guided_grammar.watch.used import ALL_BYTES

_OPENING = re.compile(rb"[\[{]")
_QUOTE, _BACKSLASH, _COMMA = b'"\\,'


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read the answer so far; there are several only where the grammar is ambiguous about a mark.

    frames: outermost first. quoted, escaped: inside of a string, behind its backslash; only kept while frames are open.
    """

    shadow: Shadow
    position: int
    frames: tuple[Frame, ...] = ()
    quoted: bool = False
    escaped: bool = False


class Answer:
    """The bytes of an answer, so that items can be cut out of it."""

    def __init__(self, data: bytes = b"") -> None:
        self.text = bytearray(data)

    def read(self, readings: tuple[Reading, ...], data: bytes, *, whole: bool) -> tuple[Reading, ...]:
        """Add `data`; the readings that are left, none when it makes equal what must differ.

        whole: bring their shadows behind `data`, and note what else was allowed; else a reading that is alone is
            believed to read it, as masks say.
        """
        offset = len(self.text)
        self.text += data
        waiting = [_Reader(reading, self.text, offset, data, whole) for reading in readings]
        left: list[_Reader] = []
        while waiting:
            reader = waiting.pop()
            if reader.run(waiting):
                left.append(reader)
            whole = whole or bool(waiting or left[1:])
        return tuple(reader.reading for reader in left if not whole or reader.finish())


class _Reader:
    """One reading on its way through `data`, which stands at `offset` in `text`."""

    def __init__(self, reading: Reading, text: bytearray, offset: int, data: bytes, whole: bool) -> None:
        self._text, self._offset, self._data, self._whole = text, offset, data, whole
        self._shadow, self._position = reading.shadow, reading.position
        self._frames = [frame.copy() for frame in reading.frames]
        self._quoted, self._escaped = reading.quoted, reading.escaped
        self._at = self._fed = 0

    @property
    def reading(self) -> Reading:
        return Reading(self._shadow, self._position, tuple(self._frames), self._quoted, self._escaped)

    def run(self, others: list[_Reader]) -> bool:
        """Read to the end; False when items are equal. others: gets a reader for each other way to take a mark."""
        while self._at < len(self._data):
            if not self._frames:
                found = _OPENING.search(self._data, self._at)
                if found is None:
                    return True
                self._at = found.end()
                if not self._open(others):
                    return False
                continue
            byte = self._data[self._at]
            if not self._step(byte):
                return False
            self._at += 1
            if not (self._in_string(byte) if self._quoted else self._outside(byte, others)):
                return False
        return True

    def finish(self) -> bool:
        """Bring the shadow behind the data; False when it cannot be read."""
        return self._feed(self._data[self._fed :])

    def _feed(self, data: bytes) -> bool:
        self._fed += len(data)
        if data and not self._shadow.feed(self._position, data):
            return False
        self._position += bool(data)
        return True

    def _step(self, byte: int) -> bool:
        """Let every frame note the byte that comes; an item begins with it if one may."""
        allowed = ALL_BYTES
        if self._whole and any(frame.records for frame in self._frames):
            if not self._feed(self._data[self._fed : self._at]):
                return False
            allowed = self._shadow.legal(self._position)
        top = self._frames[-1]
        may_begin = top.phase in (Phase.OPEN, Phase.COMMA) and byte not in b", ]}"
        if may_begin:
            top.begin(self._offset + self._at)
        if top.phase == Phase.AFTER and not (top.depth or self._quoted or top.used.root.live):
            allowed &= ~(1 << _COMMA)
        for frame in reversed(self._frames):
            if frame.phase == Phase.ITEM:
                allowed = frame.step(byte, allowed)
        return True

    def _in_string(self, byte: int) -> bool:
        if self._escaped or byte == _BACKSLASH:
            self._escaped = not self._escaped
            return True
        if byte != _QUOTE:
            return True
        self._quoted = False
        return self._closed()

    def _outside(self, byte: int, others: list[_Reader]) -> bool:
        frame = self._frames[-1]
        if byte in b"[{":
            return self._open(others)
        if byte in b"]}":
            return self._close(frame)
        if byte == _COMMA and not frame.depth:
            alive = self._ended()
            frame.phase = Phase.COMMA
            return alive
        self._quoted = byte == _QUOTE
        return True

    def _close(self, frame: Frame) -> bool:
        if frame.depth:
            frame.depth -= 1
            return self._closed()
        if not self._ended():
            return False
        self._frames.pop()
        if frame.is_keys and len(frame.used.keys) > 1:
            for outer in self._frames:
                outer.is_mixed = True
        return not self._frames or self._closed()

    def _closed(self) -> bool:
        """A string or container ends here: the item, unless it is only a part of it."""
        frame = self._frames[-1]
        return bool(frame.depth) or frame.phase != Phase.ITEM or self._complete(frame, self._offset + self._at)

    def _ended(self) -> bool:
        """A comma or bracket of the watched container ends a number or word."""
        frame = self._frames[-1]
        return frame.phase != Phase.ITEM or self._complete(frame, self._offset + self._at - 1)

    def _complete(self, frame: Frame, end: int) -> bool:
        return frame.finish(bytes(self._text[frame.start : end]))

    def _open(self, others: list[_Reader]) -> bool:
        """The bracket just read opens a container; which kind, the shadow knows."""
        if not self._feed(self._data[self._fed : self._at]):
            return False
        marks, plain = self._shadow.marks(self._position)
        ways: list[Mark | None] = [*marks, None] if plain else [*marks]
        for way in ways[1:]:
            other = self._copy()
            if other._enter(way):
                others.append(other)
        return bool(ways) and self._enter(ways[0])

    def _enter(self, way: Mark | None) -> bool:
        if way is not None:
            self._frames.append(Frame(way.watch))
            if not self._shadow.feed(self._position, way.text):
                return False
            self._position += 1
        elif self._frames:
            self._frames[-1].depth += 1
        return True

    def _copy(self) -> _Reader:
        other = _Reader(self.reading, self._text, self._offset, self._data, self._whole)
        other._shadow = self._shadow.fork(self._position)
        other._at, other._fed = self._at, self._fed
        return other
