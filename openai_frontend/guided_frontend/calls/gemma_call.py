"""Reads calls as Gemma 4 writes them: `call:f{key:<|"|>text<|"|>,n:2}`."""

from __future__ import annotations

import re

from guided_grammar.formats import STRING_MARK, ToolFormat

from guided_frontend.calls.balanced import balanced
from guided_frontend.calls.literal import json_of, string_of
from guided_frontend.calls.pieces import CallArguments, CallEnd, CallStart, Reading, Schemas
from guided_frontend.calls.source import Source

_QUOTES = (STRING_MARK,)
_NAME = re.compile(r"[\w.\-]+")
_MAX_NAME = 256


def read(source: Source, row: ToolFormat, schemas: Schemas) -> Reading[bool]:
    """One call; each argument is passed on when it is complete."""
    yield from source.accept_after_blanks(row.before_name)
    name = yield from source.until(("{",), _MAX_NAME)
    if name is None or not _NAME.fullmatch(name.strip()):
        return False
    yield from source.take()
    yield CallStart(name.strip())
    opening = "{"
    while not (yield from source.accept_after_blanks("}")):
        key = yield from source.until((":",), _MAX_NAME)
        if key is None:
            return False
        yield from source.take()
        yield CallArguments(f"{opening}{string_of(key.replace(STRING_MARK, '').strip())}: ")
        value = yield from balanced(source, _QUOTES, ",}")
        if value is None:
            return False
        yield CallArguments(json_of(value, _QUOTES, bare=True) or string_of(value.strip()))
        yield from source.accept(",")
        opening = ", "
    yield CallArguments("}" if opening == ", " else "{}")
    yield CallEnd()
    return True
