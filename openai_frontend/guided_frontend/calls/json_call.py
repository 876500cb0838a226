"""Reads calls whose arguments are a JSON object, which is passed on as it comes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from guided_grammar.formats import ToolFormat

from guided_frontend.calls.pieces import CallArguments, CallEnd, CallStart, Piece, Reading, Schemas
from guided_frontend.calls.source import BLANKS, Source
from guided_frontend.json_scan import At, JsonScanner

_NAME_KEY = "name"
_ARGUMENT_KEYS = ("arguments", "parameters")
_MAX_HEAD = 512
_NOT_PLAIN = '"\\' + "".join(map(chr, range(0x20)))
"""What does not simply go on a JSON string."""
_NUMBERED = re.compile(r"(?:functions\.)?(.+?)(?::\d+)?", re.DOTALL)


def read(source: Source, row: ToolFormat, schemas: Schemas) -> Reading[bool]:
    """One call from before its name to after its arguments."""
    if row.in_object:
        return (yield from read_object(source, None if row.trigger or not schemas else schemas))
    return (yield from _named(source, row))


def read_object(source: Source, names: Schemas | None = None) -> Reading[bool]:
    """An object that holds a name and arguments. names: the only names that make it a call, None for any."""
    reader = _ObjectReader(names)
    while not reader.done:
        char = yield from source.peek()
        if not char:
            return False
        yield from reader.feed(char)
        if reader.failed:
            return False
        source.at += 1
        if reader.in_string:
            yield from reader.plain(source.run(_NOT_PLAIN))
    yield CallEnd()
    return True


def read_arguments(source: Source) -> Reading[bool]:
    """A JSON object on its own. False where it cannot be read on."""
    scanner = JsonScanner()
    while scanner.at is not At.DONE:
        char = yield from source.peek()
        if not char or (scanner.depth == 0 and char != "{") or not scanner.feed(char):
            return False
        source.at += 1
        yield CallArguments(char + (source.run(_NOT_PLAIN) if scanner.at is At.STRING else ""))
    return True


def _named(source: Source, row: ToolFormat) -> Reading[bool]:
    """The name and its markup, then the arguments on their own."""
    head = yield from source.until(("{",), _MAX_HEAD)
    found = None if head is None else _head(head, row)
    if found is None:
        return False
    yield found
    if not (yield from read_arguments(source)):
        return False
    yield from source.close(row.after_arguments.strip())
    yield CallEnd()
    return True


def _head(head: str, row: ToolFormat) -> CallStart | None:
    """The name before `{`: `functions.f:0<mark>`, `f[CALL_ID]9[ARGS]`, `function<mark>f` and a line with a fence."""
    name = head.strip().removeprefix(row.before_name) if row.after_name != "" else head
    before_index, index, after = row.after_name.partition("{index}")
    mark = (after if index else before_index).strip()
    name, found, _ = name.partition(mark)
    name, by_id, call_id = name.partition("[CALL_ID]")
    if not found and not by_id:
        name, found, _ = name.partition("\n")
    name = name.strip()
    match = _NUMBERED.fullmatch(name) if index else None
    if not name or not found or any(char in BLANKS for char in name):
        return None
    if match is not None:
        return CallStart(match[1], f"{row.before_name}{name}" if match[1] != name else "")
    return CallStart(name, call_id.strip())


class _ObjectReader:
    """An object with a name and arguments, in either order; `id` is kept, other keys are skipped.

    names: the only names that make it a call, None for any.
    """

    def __init__(self, names: Schemas | None) -> None:
        self._names = names
        self._scan = JsonScanner()
        self._chars: list[str] = []
        self.started = self.done = self.failed = False
        self._key = ""
        self._name: str | None = None
        self._arguments: str | None = None
        self._id = ""
        self._start = -1
        self._sent = -1

    @property
    def in_string(self) -> bool:
        return self._scan.at is At.STRING

    def plain(self, text: str) -> Iterator[Piece]:
        """More of a string, without anything that ends or escapes."""
        self._chars.extend(text)
        if text and self._streams():
            yield from self._send(len(self._chars))

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
        if self._key == _NAME_KEY and self._name is None:
            self._name = _string(value)
            self.failed = self._name is None or (self._names is not None and self._name not in self._names)
        elif self._key == "id" and not self.started:
            self._id = _string(value) or ""
        elif self._key in _ARGUMENT_KEYS and self._arguments is None:
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
        here = self._key in _ARGUMENT_KEYS and self._arguments is None and self._start >= 0
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
        yield CallStart(self._name or "", self._id)

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
