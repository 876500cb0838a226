"""What a row of the format table says: how one model family writes tool calls and reasoning.

The grammar that forces a call (`tools.py`) and the parser that reads it (the frontend) are both driven by a row, so
they cannot disagree. An answer in a format with calls is

    [reasoning.open TEXT reasoning.close] TEXT SECTION [TEXT SECTION]... [TEXT]
    SECTION = open CALL [between CALL]... close
    CALL    = call_open before_name NAME after_name ARGUMENTS after_arguments call_close

`ARGUMENTS` is a JSON object (style JSON), `argument_open KEY after_key VALUE argument_close` repeated (XML),
`key=literal, ...` (PYTHON) or `key:value,...` (GEMMA). Style HARMONY has JSON arguments, and an answer consists of
messages on channels, of which a call is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum


class CallStyle(str, Enum):
    """How the arguments of one call are written."""

    NONE = "none"
    JSON = "json"
    XML = "xml"
    PYTHON = "python"
    GEMMA = "gemma"
    HARMONY = "harmony"


@dataclass(frozen=True)
class Reasoning:
    """Markers of the reasoning block. Blanks at their ends are what models write there; readers skip them.

    opened_by_prompt: the chat template writes `open` when thinking is on, so the output starts inside the block.
    interrupted_by: texts that end the block without its closer; they belong to the answer.
    also: other pairs of markers that models of the family wrote; read, never written.
    strays: markup that may be left over in an answer, where it means nothing; blocks may then begin anywhere in it.
    """

    open: str
    close: str
    opened_by_prompt: bool = False
    interrupted_by: tuple[str, ...] = ()
    strays: tuple[str, ...] = ()
    also: tuple[tuple[str, str], ...] = ()

    def __iter__(self) -> Iterator[str]:
        return iter((self.open, self.close))

    @property
    def markup(self) -> tuple[str, ...]:
        """Every text that a reader of reasoning looks for."""
        return (self.open, self.close, *self.strays, *self.interrupted_by)


@dataclass(frozen=True)
class ToolFormat:
    """How one family writes calls. `models` names families for people.

    trigger: the text whose appearance in free text begins a section, a prefix of `open + call_open`; "" where only a
        whole answer can be a section.
    prefix, suffix: what a section that is the whole answer may stand between; `prefix` must where there is a trigger.
    also: other texts that a reader takes for the beginning of a section.
    The texts around names and arguments are exactly what a grammar writes; readers skip blanks around their marks.
    after_name may hold `{index}`, the number of the call.
    also_open, also_after_name, also_after_arguments: other spellings that models of the family were taught, which they
    may choose where calls are left to them; `{id}` is an identifier of nine characters.
    is_sorted: arguments are in alphabetical order, else as declared. is_single: an answer holds at most one call.
    tokens: texts that a vocabulary may hold as one token; a grammar then writes that token, never its spelling.
    """

    name: str
    models: str
    style: CallStyle = CallStyle.NONE
    trigger: str = ""
    also: tuple[str, ...] = ()
    prefix: str = ""
    suffix: str = ""
    open: str = ""
    close: str = ""
    call_open: str = ""
    call_close: str = ""
    between: str = ""
    before_name: str = ""
    after_name: str = ""
    after_arguments: str = ""
    also_open: tuple[str, ...] = ()
    also_after_name: tuple[str, ...] = ()
    also_after_arguments: tuple[str, ...] = ()
    argument_open: str = ""
    after_key: str = ""
    argument_close: str = ""
    tokens: tuple[str, ...] = ()
    reasoning: Reasoning | None = None
    is_sorted: bool = False
    is_single: bool = False

    @property
    def has_calls(self) -> bool:
        return self.style is not CallStyle.NONE

    @property
    def in_object(self) -> bool:
        """The name stands inside of a JSON object, beside the arguments."""
        return self.before_name.startswith("{")

    @property
    def markers(self) -> frozenset[str]:
        """Markup of calls that a vocabulary may hold as one token, and that grammars of this row write."""
        return frozenset(self.tokens)

    def marks(self, markup: str) -> tuple[str, ...]:
        """The parts of one of these texts that a reader looks for one by one."""
        tokens = sorted(self.tokens, key=len, reverse=True)
        parts = re.split(f"({'|'.join(map(re.escape, tokens))})", markup) if tokens else [markup]
        return tuple(part.strip() for part in parts if part.strip())

    @property
    def needs_call_open(self) -> bool:
        """Within a section nothing but a token begins a call."""
        return self.open != "" and self.call_open in self.tokens

    @property
    def lead(self) -> str:
        """What stands before the name of the first call."""
        return self.open + self.call_open
