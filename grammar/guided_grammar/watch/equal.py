"""When two JSON texts mean equal values, and how a text begun may still come to mean a value."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

_WORDS = re.compile(r'"(?:[^"\\]|\\.)*"|True|False|None', re.DOTALL)
_JSON_WORDS = {"True": "true", "False": "false", "None": "null"}
_NUMERIC = b"-.0123456789"
_ZEROS = b"0" * 24

Form = Any
"""A value made ready for `endings`: dict[name as written with its colon, Form], list[Form], Decimal, or a tuple of the
texts of a scalar."""


def parse(text: bytes) -> Any:
    """The value of a JSON text, numbers as Decimal. Python's words for true, false and null are read as well."""
    plain = _WORDS.sub(lambda found: _JSON_WORDS.get(found[0], found[0]), text.decode())
    return json.loads(plain, parse_int=Decimal, parse_float=Decimal)


def key(value: Any) -> Any:
    """Hashable; equal for two values exactly when JSON Schema calls them equal."""
    match value:
        case dict():
            return "object", frozenset((name, key(item)) for name, item in value.items())
        case list():
            return "array", tuple(map(key, value))
        case bool():
            return "boolean", value
        case _:
            return value


def form(value: Any) -> Form:
    """What `endings` needs of a value of `parse`."""
    match value:
        case dict():
            return {_quoted(name) + b": ": form(item) for name, item in value.items()}
        case list():
            return [form(item) for item in value]
        case str():
            return (_quoted(value),)
        case Decimal():
            return value
    return json.dumps(value).encode(), str(value).encode()


def _quoted(value: str) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def padded(value: Decimal) -> list[bytes]:
    """Spellings of a number, the last one with many zeros behind its point: each other one is a beginning of it."""
    plain = format(value.normalize(), "f").encode()
    return [plain, plain + (b"" if b"." in plain else b".") + _ZEROS]


class _Apart(Exception):
    """The text can no longer become the value."""


class _Ends(Exception):
    """The text ends inside; `rests` are the ways to go on to the end of the present scalar, member or bracket."""

    def __init__(self, rests: list[bytes]) -> None:
        self.rests = rests


def endings(text: bytes, wanted: Form) -> list[bytes] | None:
    """How a beginning `text` may go on towards a value, one scalar, member or bracket ahead; None when it cannot come
    to mean it."""
    try:
        _follow(text, 0, wanted)
    except _Ends as end:
        return end.rests
    except _Apart:
        return None
    return [b""]


def _follow(text: bytes, at: int, wanted: Form) -> int:
    """The offset behind the value in `text`."""
    match wanted:
        case dict():
            return _follow_object(text, at, wanted)
        case list():
            return _follow_array(text, at, wanted)
        case Decimal():
            return _follow_number(text, at, wanted)
    return _one_of(text, at, wanted)


def _one_of(text: bytes, at: int, spellings: tuple[bytes, ...]) -> int:
    """Raises unless one of them stands whole at `at`."""
    for spelling in spellings:
        if text.startswith(spelling, at):
            return at + len(spelling)
    begun = text[at:]
    rests = [spelling[len(begun) :] for spelling in spellings if spelling.startswith(begun)]
    raise _Ends(rests) if rests else _Apart


def _follow_number(text: bytes, at: int, value: Decimal) -> int:
    end = at
    while end < len(text) and text[end] in _NUMERIC:
        end += 1
    if end < len(text):
        if end == at or Decimal(text[at:end].decode()) != value:
            raise _Apart
        return end
    rests = [spelling[end - at :] for spelling in padded(value) if spelling.startswith(text[at:])]
    raise _Ends(rests) if rests else _Apart


def _follow_array(text: bytes, at: int, items: list[Form]) -> int:
    at = _one_of(text, at, (b"[",))
    for index, item in enumerate(items):
        if index:
            at = _one_of(text, at, (b", ",))
        at = _follow(text, at, item)
    return _one_of(text, at, (b"]",))


def _follow_object(text: bytes, at: int, members: dict[bytes, Form]) -> int:
    """A member is offered whole, so that a token over the end of a name into its value is on the way to it."""
    at = _one_of(text, at, (b"{",))
    left = list(members)
    while left:
        if len(left) < len(members):
            at = _one_of(text, at, (b", ",))
        name = next((name for name in left if text.startswith(name, at)), None)
        if name is None:
            _one_of(text, at, tuple(name + _written(members[name]) for name in left if name.startswith(text[at:])))
            raise _Apart
        at = _follow(text, at + len(name), members[name])
        left.remove(name)
    return _one_of(text, at, (b"}",))


def _written(wanted: Form) -> bytes:
    """One text of the value."""
    match wanted:
        case dict():
            return b"{" + b", ".join(name + _written(item) for name, item in wanted.items()) + b"}"
        case list():
            return b"[" + b", ".join(map(_written, wanted)) + b"]"
        case Decimal():
            return padded(wanted)[0]
    text: bytes = wanted[0]
    return text
