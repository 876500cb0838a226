"""When two JSON texts mean equal values, and how a text begun may still come to mean a value."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

_WORDS = re.compile(r'"(?:[^"\\]|\\.)*"|True|False|None', re.DOTALL)
_JSON_WORDS = {"True": "true", "False": "false", "None": "null"}
_NUMERIC = b"-.0123456789"


def write(value: Any) -> str:
    """One JSON text of a value."""
    match value:
        case dict():
            return "{" + ", ".join(f"{write(name)}: {write(item)}" for name, item in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(write, value)) + "]"
        case Decimal():
            return padded(value)[0].decode()
    return json.dumps(value, ensure_ascii=False)


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


class _Apart(Exception):
    """The text can no longer become the value."""


class _Ends(Exception):
    """The text ends inside; `rests` are the ways to go on to the end of the present scalar, name or bracket."""

    def __init__(self, rests: list[bytes]) -> None:
        self.rests = rests


def endings(text: bytes, value: Any) -> list[bytes] | None:
    """How a proper beginning `text` of an item that is an array or object may go on towards `value`, one scalar, name
    or bracket ahead; None when it cannot come to mean `value`."""
    try:
        _follow(text, 0, value)
    except _Ends as end:
        return end.rests
    except _Apart:
        return None
    return [b""]


def _follow(text: bytes, at: int, value: Any) -> int:
    """The offset behind `value` in `text`."""
    match value:
        case dict():
            return _follow_object(text, at, value)
        case list():
            return _follow_array(text, at, value)
        case Decimal():
            return _follow_number(text, at, value)
    spellings = [json.dumps(value, ensure_ascii=False).encode()]
    if not isinstance(value, str):
        spellings.append(str(value).encode())
    return _one_of(text, at, spellings)


def _one_of(text: bytes, at: int, spellings: list[bytes]) -> int:
    """Raises unless one of them stands whole at `at`."""
    rests = []
    for spelling in spellings:
        if text.startswith(spelling, at):
            return at + len(spelling)
        if spelling.startswith(text[at:]):
            rests.append(spelling[len(text) - at :])
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


_ZEROS = b"0" * 24


def padded(value: Decimal) -> list[bytes]:
    """Spellings of a number, the last one with many zeros behind its point: each other one is a beginning of it."""
    plain = format(value.normalize(), "f").encode()
    return [plain, plain + (b"" if b"." in plain else b".") + _ZEROS]


def _follow_array(text: bytes, at: int, value: list[Any]) -> int:
    at = _one_of(text, at, [b"["])
    for index, item in enumerate(value):
        if index:
            at = _one_of(text, at, [b", "])
        at = _follow(text, at, item)
    return _one_of(text, at, [b"]"])


def _follow_object(text: bytes, at: int, value: dict[str, Any]) -> int:
    at = _one_of(text, at, [b"{"])
    left = {json.dumps(name, ensure_ascii=False).encode() + b": ": item for name, item in value.items()}
    while left:
        if len(left) < len(value):
            at = _one_of(text, at, [b", "])
        name = next((name for name in left if text.startswith(name, at)), None)
        if name is None:
            _one_of(text, at, _pairs(left))
            raise _Apart
        at = _follow(text, at + len(name), left.pop(name))
    return _one_of(text, at, [b"}"])


def _pairs(members: dict[bytes, Any]) -> list[bytes]:
    """Whole members, so that a token over the end of a name into its value is on the way to them."""
    return [name + write(value).encode() for name, value in members.items()]
