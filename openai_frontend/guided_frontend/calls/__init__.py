"""Readers of tool calls, one module for each style of a format row.

A reader takes one call, from before its name to after its arguments. It answers False where the text is no call: then
it gave no piece, or the call that it began was cut off in its arguments.
"""

from __future__ import annotations

from collections.abc import Callable

from guided_grammar.formats import CallStyle, ToolFormat

from guided_frontend.calls import gemma_call, json_call, python_call, xml_call
from guided_frontend.calls.pieces import Reading, Schemas
from guided_frontend.calls.source import Source

READERS: dict[CallStyle, Callable[[Source, ToolFormat, Schemas], Reading[bool]]] = {
    CallStyle.JSON: json_call.read,
    CallStyle.XML: xml_call.read,
    CallStyle.PYTHON: python_call.read,
    CallStyle.GEMMA: gemma_call.read,
}
