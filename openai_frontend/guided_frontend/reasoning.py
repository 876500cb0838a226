"""Splits generated text into reasoning and answer at the markers of a format row."""

from __future__ import annotations

from enum import Enum, auto

from guided_grammar.formats import Reasoning

from guided_frontend.json_scan import BLANKS


class _State(Enum):
    BEFORE = auto()
    INSIDE = auto()
    ANSWER = auto()


class ReasoningSplitter:
    """`inside`: the prompt already opened the block. Blanks just inside the markers and after the block are dropped."""

    def __init__(self, markers: Reasoning, inside: bool) -> None:
        self._markers = markers
        self._state = _State.INSIDE if inside else _State.BEFORE
        self._held = ""
        self._blanks = ""
        self._lead = inside

    def feed(self, text: str) -> tuple[str, str]:
        """(reasoning, answer) that `text` adds."""
        reasoning = answer = ""
        for place, char in enumerate(text):
            if self._state is _State.ANSWER and not self._lead:
                return reasoning, answer + text[place:]
            if self._state is _State.BEFORE:
                answer += self._before(char)
            elif self._state is _State.INSIDE:
                reasoning += self._inside(char)
            elif char not in BLANKS:
                self._lead = False
                answer += char
        return reasoning, answer

    def finish(self) -> tuple[str, str]:
        """What was still held back when the text ended."""
        held, self._held = self._held, ""
        return (self._blanks + held, "") if self._state is _State.INSIDE and held else ("", held)

    def _before(self, char: str) -> str:
        self._held += char
        seen = self._held.lstrip(BLANKS)
        if self._markers.open.startswith(seen):
            if seen == self._markers.open:
                self._state, self._held, self._lead = _State.INSIDE, "", True
            return ""
        held, self._held, self._state = self._held, "", _State.ANSWER
        return held

    def _inside(self, char: str) -> str:
        self._held += char
        freed = ""
        while self._held and not self._markers.close.startswith(self._held):
            freed += self._text(self._held[0])
            self._held = self._held[1:]
        if self._held == self._markers.close:
            self._state, self._held, self._blanks, self._lead = _State.ANSWER, "", "", True
        return freed

    def _text(self, char: str) -> str:
        if char in BLANKS:
            self._blanks += "" if self._lead else char
            return ""
        text, self._blanks, self._lead = self._blanks + char, "", False
        return text
