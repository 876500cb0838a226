"""Reading an answer's bytes: which watched containers are open, what they hold, where in an item the text stands."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import IntEnum

from guided_grammar.watch.marks import Watch, written
from guided_grammar.watch.shadow import Shadow
from guided_grammar.watch.used import NONE, Used

_OPENING = re.compile(rb"[\[{]")
_IN_STRING = re.compile(rb'["\\]')


class Phase(IntEnum):
    """Where a frame stands: before its first item, in one, behind one (a name's value included), behind a comma."""

    OPEN = 0
    ITEM = 1
    AFTER = 2
    COMMA = 3


@dataclass(frozen=True, slots=True)
class Frame:
    """An open watched container. start: offset of the item in the answer. depth: unwatched containers inside of it."""

    watch: Watch
    used: Used = NONE
    phase: Phase = Phase.OPEN
    start: int = 0
    depth: int = 0


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

        whole: bring their shadows behind `data`; else a reading that is alone is believed to read it, as masks say.
        """
        offset = len(self.text)
        self.text += data
        waiting = [_Reader(reading, self.text, offset, data) for reading in readings]
        left: list[_Reader] = []
        while waiting:
            reader = waiting.pop()
            if reader.run(waiting):
                left.append(reader)
            whole = whole or bool(waiting or left[1:])
        return tuple(reader.reading for reader in left if not whole or reader.finish())


class _Reader:
    """One reading on its way through `data`, which stands at `offset` in `text`."""

    def __init__(self, reading: Reading, text: bytearray, offset: int, data: bytes) -> None:
        self._text, self._offset, self._data = text, offset, data
        self._shadow, self._position = reading.shadow, reading.position
        self._frames = list(reading.frames)
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
                alive = self._open(others)
            elif self._quoted:
                alive = self._in_string()
            else:
                byte = self._data[self._at]
                self._at += 1
                alive = self._outside(byte, others)
            if not alive:
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

    def _in_string(self) -> bool:
        if self._escaped:
            self._escaped = False
            self._at += 1
            return True
        found = _IN_STRING.search(self._data, self._at)
        self._at = len(self._data) if found is None else found.end()
        if found is None:
            return True
        self._escaped = found[0] == b"\\"
        self._quoted = self._escaped
        return self._escaped or self._closed()

    def _outside(self, byte: int, others: list[_Reader]) -> bool:
        frame = self._frames[-1]
        if byte in b"[{":
            self._begin(frame)
            return self._open(others)
        if byte in b"]}":
            return self._close(frame)
        if byte == 0x2C and not frame.depth:
            return self._ended() and self._move(Phase.COMMA)
        if byte == 0x22:
            self._quoted = True
            self._begin(frame)
        elif byte not in b" ,:" and Watch.KEYS not in frame.watch:
            self._begin(frame)
        return True

    def _begin(self, frame: Frame) -> None:
        """An item begins with the byte just read, if one may."""
        if not frame.depth and frame.phase in (Phase.OPEN, Phase.COMMA):
            self._frames[-1] = replace(frame, phase=Phase.ITEM, start=self._offset + self._at - 1)

    def _close(self, frame: Frame) -> bool:
        if frame.depth:
            self._frames[-1] = replace(frame, depth=frame.depth - 1)
            return self._closed()
        if not self._ended():
            return False
        self._frames.pop()
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
        item = bytes(self._text[frame.start : end])
        used = frame.used.add(item, Watch.VALUE in frame.watch, keeps=Watch.PLACED not in frame.watch)
        if used is None:
            return False
        self._frames[-1] = replace(frame, used=used, phase=Phase.AFTER)
        return True

    def _move(self, phase: Phase) -> bool:
        self._frames[-1] = replace(self._frames[-1], phase=phase)
        return True

    def _open(self, others: list[_Reader]) -> bool:
        """The bracket just read opens a container; which kind, the shadow knows."""
        if not self._feed(self._data[self._fed : self._at]):
            return False
        marks, plain = self._shadow.marks(self._position)
        ways: list[Watch | None] = [*marks, None] if plain else [*marks]
        for way in ways[1:]:
            other = self._copy()
            if other._enter(way):
                others.append(other)
        return bool(ways) and self._enter(ways[0])

    def _enter(self, way: Watch | None) -> bool:
        if way is not None:
            self._frames.append(Frame(way))
            if not self._shadow.feed(self._position, written(way)):
                return False
            self._position += 1
        elif self._frames:
            frame = self._frames[-1]
            self._frames[-1] = replace(frame, depth=frame.depth + 1)
        return True

    def _copy(self) -> _Reader:
        other = _Reader(self.reading, self._text, self._offset, self._data)
        other._shadow = self._shadow.fork(self._position)
        other._at, other._fed = self._at, self._fed
        return other
