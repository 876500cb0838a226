"""One row per model family: how tool calls and reasoning are written.

The grammar that forces a call (`tools.py`) and the parser that reads it (the frontend) are both driven by a row, so
they cannot disagree. An answer in a format with calls is

    [reasoning.open TEXT reasoning.close] TEXT call_open BODY call_close [between call_open BODY call_close]... [TEXT]

where BODY of style "json" is `{"<name_key>": "f", "<arguments_key>": {...}}`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from guided_grammar.errors import InvalidConstraint


class CallStyle(str, Enum):
    """How the body of one call is written."""

    NONE = "none"
    JSON = "json"


@dataclass(frozen=True)
class Reasoning:
    """Markers of the reasoning block. `opened_by_prompt`: the chat template writes `open`, so output starts inside."""

    open: str
    close: str
    opened_by_prompt: bool = False

    def __iter__(self) -> Iterator[str]:
        return iter((self.open, self.close))


@dataclass(frozen=True)
class ToolFormat:
    """How one family writes calls.

    trigger: the text whose appearance in free text begins a call; a prefix of `call_open`, and what parsers look for.
    call_open, call_close: the exact text that the grammar writes around BODY. A parser strips blanks of both.
    between: the exact text between two parallel calls; parsers accept any blanks there.
    special: markers that are special tokens, matched and emitted as token ids, never as text.
    """

    name: str
    style: CallStyle = CallStyle.NONE
    trigger: str = ""
    call_open: str = ""
    call_close: str = ""
    between: str = ""
    name_key: str = "name"
    arguments_key: str = "arguments"
    reasoning: Reasoning | None = None
    special: frozenset[str] = frozenset()

    @property
    def has_calls(self) -> bool:
        return self.style is not CallStyle.NONE

    @property
    def markers(self) -> frozenset[str]:
        """Markup that a vocabulary may hold as one added token, and that grammars of this row write."""
        marks = (self.trigger, self.call_close, *(self.reasoning or ()))
        return frozenset(mark.strip() for mark in marks if mark.strip())


THINK = Reasoning("<think>", "</think>")

HERMES = ToolFormat(
    name="hermes",
    style=CallStyle.JSON,
    trigger="<tool_call>",
    call_open="<tool_call>\n",
    call_close="\n</tool_call>",
    between="\n",
    reasoning=THINK,
)
CONTENT_ONLY = ToolFormat(name="content_only", reasoning=THINK)

FORMATS: dict[str, ToolFormat] = {row.name: row for row in (HERMES, CONTENT_ONLY)}


def tool_format(name: str) -> ToolFormat:
    """The row of that name; raises InvalidConstraint naming the known ones."""
    try:
        return FORMATS[name]
    except (KeyError, TypeError):
        known = ", ".join(sorted(FORMATS))
        raise InvalidConstraint(f"unknown tool format {name!r}; known: {known}", keyword="tool_format") from None
