"""Values as models write them, in JSON, in Python or with a family's own quotes, to JSON text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from guided_frontend.calls.source import BLANKS

QUOTES = ('"""', "'''", '"', "'")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_WORD = re.compile(r"[^\s,\[\](){}:]+")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_MARKS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": "", "0": "\0"}
_KEPT = "\"'\\/"
_WORDS = {"true": "true", "false": "false", "null": "null", "none": "null"}
_CLOSERS = {"{": "}", "[": "]", "(": ")"}


class NotALiteral(ValueError):
    """The text is no value."""


def json_of(text: str, quotes: tuple[str, ...] = QUOTES, bare: bool = False) -> str | None:
    """JSON text of the one value that `text` is, None when it is none. `quotes` begin and end strings, longest first;
    those of several characters hold no escapes unless they are Python's. bare: words stand for strings as well."""
    try:
        reader = _Reader(text, quotes, bare)
        value = reader.value()
        return value if reader.is_done() else None
    except (NotALiteral, RecursionError):
        return None


def string_of(text: str) -> str:
    """JSON text of a string."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(text)
    return json.dumps(text, ensure_ascii=False)


class _Reader:
    def __init__(self, text: str, quotes: tuple[str, ...], bare: bool) -> None:
        self._text, self._at, self._quotes, self._bare = text, 0, quotes, bare

    def is_done(self) -> bool:
        return self._peek() == ""

    def _peek(self) -> str:
        while self._at < len(self._text) and self._text[self._at] in BLANKS:
            self._at += 1
        return self._text[self._at : self._at + 1]

    def _accept(self, char: str) -> bool:
        found = self._peek() == char
        self._at += found
        return found

    def value(self) -> str:
        char = self._peek()
        if char == "{":
            return "{" + ", ".join(self._items("}", self._pair)) + "}"
        if char in ("[", "("):
            return "[" + ", ".join(self._items(_CLOSERS[char], self.value)) + "]"
        quote = self._quote()
        return self._string(quote) if quote else self._scalar()

    def _items(self, closer: str, item: Callable[[], str]) -> list[str]:
        self._at += 1
        found: list[str] = []
        while not self._accept(closer):
            found.append(item())
            if not self._accept(",") and self._peek() != closer:
                raise NotALiteral
        return found

    def _pair(self) -> str:
        self._peek()
        quote = self._quote()
        key = self._string(quote) if quote else string_of(self._bare_key())
        if not self._accept(":"):
            raise NotALiteral
        return f"{key}: {self.value()}"

    def _bare_key(self) -> str:
        if not self._bare:
            return self._word()
        start = self._at
        self._at = self._text.find(":", start)
        if self._at < 0:
            raise NotALiteral
        return self._text[start : self._at].strip()

    def _quote(self) -> str:
        return next((quote for quote in self._quotes if self._text.startswith(quote, self._at)), "")

    def _string(self, quote: str) -> str:
        start = self._at + len(quote)
        escapes = quote in QUOTES
        end = start
        while not self._text.startswith(quote, end):
            if end >= len(self._text):
                raise NotALiteral
            end += 2 if escapes and self._text[end] == "\\" else 1
        self._at = end + len(quote)
        inside = self._text[start:end]
        return string_of(unescaped(inside) if escapes else inside)

    def _word(self) -> str:
        match = _WORD.match(self._text, self._at)
        if match is None:
            raise NotALiteral
        self._at = match.end()
        return match[0]

    def _scalar(self) -> str:
        word = self._word()
        if word.lower() in _WORDS:
            return _WORDS[word.lower()]
        number = _number(word)
        if number is not None:
            return number
        if self._bare:
            return string_of(word)
        raise NotALiteral


def _number(word: str) -> str | None:
    if _NUMBER.fullmatch(word):
        return word
    try:
        value = int(word, 0) if re.fullmatch(r"[-+]?(0[xob])?[\da-fA-F_]+", word) else float(word)
    except ValueError:
        return None
    return json.dumps(value) if value - value == 0 else None


def unescaped(text: str) -> str:
    """What a string literal with these characters between its quotes stands for."""

    def plain(match: re.Match[str]) -> str:
        code = match[1] or match[2] or match[3]
        if code:
            return chr(min(int(code, 16), 0x10FFFF))
        return _MARKS.get(match[4], match[4] if match[4] in _KEPT else match[0])

    if "\\" not in text:
        return text
    found = _ESCAPE.sub(plain, text)
    return found.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
