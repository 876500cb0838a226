"""Syntax trees of regular expressions.

Node = Set | Sequence | Choice | Loop | Assertion. Assertions are those that need no memory: `^ $ \\b \\B`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from guided_grammar.ranges import Ranges


@dataclass(frozen=True)
class Set:
    """One character of `ranges`; of none if they are empty."""

    ranges: Ranges


@dataclass(frozen=True)
class Sequence:
    items: tuple[Node, ...] = ()


@dataclass(frozen=True)
class Choice:
    options: tuple[Node, ...]


@dataclass(frozen=True)
class Loop:
    """`low` to `high` times `item`; `high` None is unbounded. Greedy and lazy loops have the same language."""

    item: Node
    low: int
    high: int | None


class Assertion(Enum):
    START = "^"
    END = "$"
    BOUNDARY = "\\b"
    NO_BOUNDARY = "\\B"


Node = Set | Sequence | Choice | Loop | Assertion
