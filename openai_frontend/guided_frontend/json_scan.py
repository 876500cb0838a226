"""Reads one JSON value character by character and tells at each whether the text so far is a prefix of JSON."""

from __future__ import annotations

import re
from enum import Enum, auto

BLANKS = " \t\n\r"
_NUMBER_PREFIX = re.compile(r"-?(?:(?:0|[1-9]\d*)(?:\.(?:\d+(?:[eE](?:[+-]?\d*)?)?)?|[eE](?:[+-]?\d*)?)?)?")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_WORDS = ("true", "false", "null")


class At(Enum):
    """What the next character belongs to."""

    VALUE = auto()
    VALUE_OR_END = auto()
    KEY = auto()
    KEY_OR_END = auto()
    COLON = auto()
    STRING = auto()
    ESCAPE = auto()
    HEX = auto()
    SCALAR = auto()
    AFTER = auto()
    DONE = auto()


class JsonScanner:
    """`depth`: open objects and arrays. `at`: DONE once the outermost object, array or string has closed."""

    def __init__(self) -> None:
        self.at = At.VALUE
        self._open: list[str] = []
        self._is_key = False
        self._scalar = ""
        self._hex = 0

    @property
    def depth(self) -> int:
        return len(self._open)

    @property
    def in_key(self) -> bool:
        return self._is_key

    def feed(self, char: str) -> bool:
        """False when `char` cannot follow; the scanner is then spent."""
        if self.at is At.SCALAR and char in BLANKS + ",]}":
            if not (self._scalar in _WORDS or _NUMBER.fullmatch(self._scalar)):
                return False
            self._value_ended()
        if self.at in (At.STRING, At.ESCAPE, At.HEX):
            return self._in_string(char)
        if self.at is At.SCALAR:
            return self._in_scalar(char)
        return char in BLANKS or self._in_structure(char)

    def _in_string(self, char: str) -> bool:
        if self.at is At.ESCAPE:
            self.at, self._hex = (At.HEX, 4) if char == "u" else (At.STRING, 0)
            return char in '"\\/bfnrtu'
        if self.at is At.HEX:
            self._hex -= 1
            self.at = At.HEX if self._hex else At.STRING
            return char in "0123456789abcdefABCDEF"
        if char == "\\":
            self.at = At.ESCAPE
        elif char == '"' and self._is_key:
            self.at = At.COLON
        elif char == '"':
            self._value_ended()
        return char >= " "

    def _in_scalar(self, char: str) -> bool:
        self._scalar += char
        return any(w.startswith(self._scalar) for w in _WORDS) or bool(_NUMBER_PREFIX.fullmatch(self._scalar))

    def _in_structure(self, char: str) -> bool:
        if self.at is At.COLON:
            self.at, self._is_key = At.VALUE, False
            return char == ":"
        if char in "]}":
            return self._close(char)
        if self.at is At.AFTER:
            self.at = At.KEY if self._open[-1] == "{" else At.VALUE
            return char == ","
        if self.at in (At.KEY, At.KEY_OR_END):
            self.at, self._is_key = At.STRING, True
            return char == '"'
        return self.at is not At.DONE and self._start_value(char)

    def _start_value(self, char: str) -> bool:
        if char in "{[":
            self._open.append(char)
            self.at = At.KEY_OR_END if char == "{" else At.VALUE_OR_END
            return True
        if char == '"':
            self.at = At.STRING
            return True
        self.at, self._scalar = At.SCALAR, ""
        return self._in_scalar(char)

    def _close(self, char: str) -> bool:
        opener, empty = ("{", At.KEY_OR_END) if char == "}" else ("[", At.VALUE_OR_END)
        if not self._open or self._open[-1] != opener or self.at not in (At.AFTER, empty):
            return False
        self._open.pop()
        self._value_ended()
        return True

    def _value_ended(self) -> None:
        self.at = At.AFTER if self._open else At.DONE
