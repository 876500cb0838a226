"""What an answer consists of, as it is read."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar


@dataclass(frozen=True)
class TextPiece:
    """Content outside calls."""

    text: str


@dataclass(frozen=True)
class ReasoningPiece:
    """Reasoning, where the format writes it in the same messages as the answer."""

    text: str


@dataclass(frozen=True)
class CallStart:
    """A call began; its name is whole. `id`: the one that the model wrote, "" for none."""

    name: str
    id: str = ""


@dataclass(frozen=True)
class CallArguments:
    """More of the running call's arguments: the pieces joined are a prefix of a JSON object."""

    text: str


@dataclass(frozen=True)
class CallEnd:
    """The running call is complete."""


Piece = TextPiece | ReasoningPiece | CallStart | CallArguments | CallEnd

Schemas = Mapping[str, Any]
"""The parameters of each tool by its name."""

T = TypeVar("T")
Reading = Generator[Piece | None, None, T]
"""Yields pieces, and None where it needs more text."""


def merged(pieces: Iterable[Piece]) -> list[Piece]:
    """Neighbours of one kind joined, so that one chunk of text makes few deltas."""
    joined: list[Piece] = []
    for piece in pieces:
        last = joined[-1] if joined else None
        if isinstance(piece, (TextPiece, ReasoningPiece, CallArguments)) and type(piece) is type(last):
            joined[-1] = type(piece)(last.text + piece.text)
        else:
            joined.append(piece)
    return joined
