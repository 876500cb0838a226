"""Answers that are either calls or a document, told apart by how they begin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from guided_grammar.formats import ToolFormat

from guided_frontend.calls.pieces import Piece, TextPiece
from guided_frontend.tool_calls import CallParser


class CallsOrDocument(CallParser):
    """A call parser that passes a document on as it is: markup within its strings is no call."""

    def __init__(self, row: ToolFormat, schemas: Mapping[str, Any]) -> None:
        super().__init__(row, schemas)
        self._trigger = row.trigger
        self._held: str | None = ""
        self._is_document = False

    def feed(self, text: str) -> list[Piece]:
        if self._held is not None:
            self._held += text
            if len(self._held) < len(self._trigger) and self._trigger.startswith(self._held):
                return []
            text, self._is_document = self._held, not self._held.startswith(self._trigger)
            self._held = None
        if self._is_document:
            return [TextPiece(text)] if text else []
        return super().feed(text)

    def finish(self) -> list[Piece]:
        held, self._held = self._held, None
        if held:
            return [TextPiece(held)]
        return [] if self._is_document else super().finish()
