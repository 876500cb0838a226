"""Reads calls whose arguments are marked-up texts."""

from __future__ import annotations

from typing import Any

from guided_grammar.argument_kinds import kinds_of
from guided_grammar.formats import ToolFormat

from guided_frontend.calls.balanced import balanced
from guided_frontend.calls.literal import QUOTES, string_of
from guided_frontend.calls.pieces import CallArguments, CallEnd, CallStart, Reading, Schemas
from guided_frontend.calls.source import Source
from guided_frontend.calls.typed import typed

_MAX_NAME = 256


def read(source: Source, row: ToolFormat, schemas: Schemas) -> Reading[bool]:
    """One call; each argument is passed on when it is complete."""
    yield from source.accept_after_blanks(row.before_name)
    name = yield from _name(source, row)
    if name is None:
        return False
    yield CallStart(name)
    yield CallArguments("{")
    is_first = True
    while (yield from source.accept_after_blanks(row.argument_open)):
        pair = yield from _argument(source, row, schemas.get(name))
        if pair is None:
            return False
        key, value = pair
        text = f"{string_of(key)}: {typed(value, schemas.get(name), key)}"
        yield CallArguments(text if is_first else f", {text}")
        is_first = False
    yield from source.close(row.after_arguments)
    yield from source.skip()
    if row.after_arguments == "" and (yield from source.peek()) == "":
        return False
    yield CallArguments("}")
    yield CallEnd()
    return True


def _name(source: Source, row: ToolFormat) -> Reading[str | None]:
    """The name up to its mark; where that is blank, up to the first argument or the end of the call."""
    mark = row.after_name.strip()
    ends = (mark,) if mark else ("\n", row.argument_open, row.call_close.strip())
    name = yield from source.until(ends, _MAX_NAME)
    if name is None or not name.strip() or any(char in name.strip() for char in "<>{}\n\"' "):
        return None
    if mark:
        yield from source.accept(mark)
    return name.strip()


def _argument(source: Source, row: ToolFormat, parameters: Any) -> Reading[tuple[str, str] | None]:
    """Key and text, without the line breaks that the markup adds."""
    first, *others = row.marks(row.after_key)
    key = yield from source.until((first,), _MAX_NAME)
    yield from source.accept(first)
    for mark in others:
        yield from source.accept_after_blanks(mark)
    if key is None:
        return None
    is_json = kinds_of(parameters, key.strip()).others
    value = yield from _value(source, row, is_json)
    return None if value is None else (key.strip(), value)


def _value(source: Source, row: ToolFormat, is_json: bool) -> Reading[str | None]:
    """The text up to its closer or the next argument, or where there is neither in all of the answer, up to the next
    markup of the call. is_json: markup within the strings of a list or an object is part of them."""
    start, closer = source.at, row.argument_close.strip()
    is_padded = row.after_key.endswith("\n") and (yield from source.accept("\n"))
    if is_padded and (yield from source.accept(closer)):
        return ""
    inner = source.at
    if is_json and (yield from source.first_of("[{")):
        nested = yield from balanced(source, QUOTES, "<\n")
        if nested is not None and (yield from source.accept_after_blanks(closer)):
            return nested
        source.at = inner
    value = yield from source.until(("\n" + closer, "\n" + row.argument_open) if is_padded else (closer,))
    if value is None:
        source.at = start
        marks = (row.argument_open, row.after_arguments, row.call_close.strip())
        value = yield from source.until(tuple(mark for mark in marks if mark))
        return None if value is None else value.strip("\n")
    yield from source.accept_after_blanks(closer)
    return value
