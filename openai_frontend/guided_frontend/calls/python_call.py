"""Reads calls that are written as Python: `f(a="x", n=2)`."""

from __future__ import annotations

import re

from guided_grammar.formats import ToolFormat

from guided_frontend.calls import json_call
from guided_frontend.calls.balanced import balanced
from guided_frontend.calls.literal import QUOTES, json_of, string_of
from guided_frontend.calls.pieces import CallArguments, CallEnd, CallStart, Reading, Schemas
from guided_frontend.calls.source import Source

_NAME = re.compile(r"[\w.\-]+")
_MAX_NAME = 256


def read(source: Source, row: ToolFormat, schemas: Schemas) -> Reading[bool]:
    """One call; each argument is passed on when it is complete. An object with a name and arguments is one as well."""
    if (yield from source.peek()) == "{":
        return (yield from json_call.read_object(source))
    name = yield from source.until(("(",), _MAX_NAME)
    if name is None or not _NAME.fullmatch(name) or (not row.trigger and schemas and name not in schemas):
        return False
    yield from source.take()
    opening = "{"
    while not (yield from source.accept_after_blanks(")")):
        yield from source.skip()
        key = yield from source.until(("=",), _MAX_NAME)
        if key is None or not _NAME.fullmatch(key.strip()):
            return False
        if opening == "{":
            yield CallStart(name)
        yield from source.take()
        yield CallArguments(f"{opening}{string_of(key.strip())}: ")
        value = yield from balanced(source, QUOTES, ",)")
        if value is None:
            return False
        yield CallArguments(json_of(value) or string_of(value.strip()))
        yield from source.accept(",")
        opening = ", "
    if opening == "{":
        yield CallStart(name)
        yield CallArguments("{")
    yield CallArguments("}")
    yield CallEnd()
    return True
