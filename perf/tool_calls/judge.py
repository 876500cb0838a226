"""What is wrong with an answer, read by the frontend's own parsers as it would stream."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jsonschema
from guided_engine.protocol import Event
from guided_frontend.chunks import ChoiceReader, MessageBuilder
from guided_frontend.reasoning import ReasoningSplitter
from guided_frontend.tool_calls import CallParser
from guided_grammar.formats import ToolFormat

from tool_calls.cases import SCHEMAS, Mode


def read(
    row: ToolFormat,
    pieces: Sequence[str],
    is_whole: bool = True,
    inside: bool | None = None,
    schemas: Mapping[str, Any] = SCHEMAS,
) -> tuple[dict[str, Any], str]:
    """The message that these pieces of text make, and its finish reason.

    inside: whether they begin within the reasoning, None where no reasoning is read.
    """
    calls = CallParser(row, schemas)
    is_read = inside is not None and row.reasoning is not None
    thoughts = ReasoningSplitter(row.reasoning, bool(inside), calls.triggers) if is_read and row.reasoning else None
    reader, builder = ChoiceReader(0, calls, thoughts, lambda: "id"), MessageBuilder()
    for piece in pieces:
        for delta in reader.feed(Event(0, text=piece)):
            builder.add(delta)
    for delta in reader.feed(Event(0, finish_reason="stop" if is_whole else "length")):
        builder.add(delta)
    return builder.to_dict(), reader.finish_reason or ""


def faults(mode: Mode, message: dict[str, Any], finish_reason: str, is_called: bool) -> Iterator[str]:
    """is_called: the markup of a call was written."""
    calls = message.get("tool_calls", [])
    for call in calls:
        yield from _faults_of(call["function"]["name"], call["function"]["arguments"])
    if (is_called or mode.choice != "auto") and not calls:
        yield "no call"
    if not mode.parallel and len(calls) > 1:
        yield f"{len(calls)} calls"
    if mode.choice != "auto" and message["content"]:
        yield "content beside a forced call"
    if mode.choice not in ("auto", "required") and [c["function"]["name"] for c in calls] != [mode.choice]:
        yield "another call than the named one"
    if finish_reason != ("tool_calls" if calls else "stop"):
        yield f"finish_reason {finish_reason}"


def _faults_of(name: str, arguments: str) -> Iterator[str]:
    if name not in SCHEMAS:
        yield f"unknown tool {name!r}"
        return
    try:
        jsonschema.validate(json.loads(arguments), SCHEMAS[name])
    except (ValueError, jsonschema.ValidationError) as error:
        yield f"arguments of {name}: {str(error).splitlines()[0]}"
