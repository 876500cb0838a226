"""An open container that is watched: its used items, and how far the next one is written."""

from __future__ import annotations

from decimal import Decimal
from enum import IntEnum
from typing import Any

from guided_grammar.watch.equal import form, key, padded, parse
from guided_grammar.watch.marks import Watch
from guided_grammar.watch.used import NOTHING_USED, Node, Spelled

_Exits = tuple[Any, int] | None


class Phase(IntEnum):
    """Where a frame stands: before its first item, in one, behind one (a name's value included), behind a comma."""

    OPEN = 0
    ITEM = 1
    AFTER = 2
    COMMA = 3


class Frame:
    """An open watched container. Only its reader changes it, and only before it hands out a reading.

    start: offset of the item in the answer. depth: unwatched containers inside of it. node: the item's text so far
    among the used ones, None when it is none. exits: (what was allowed before each of its bytes) last first, linked.
    is_mixed: the item holds an object whose names may have been written in another order.
    records: exits are noted. checks, is_endless, is_keys: what `watch` says.
    """

    __slots__ = (
        *("checks", "is_endless", "is_keys", "records", "watch"),
        *("_near", "depth", "exits", "is_mixed", "node", "phase", "start", "used"),
    )

    def __init__(self, watch: Watch) -> None:
        self.watch, self.used, self.phase = watch, NOTHING_USED, Phase.OPEN
        # read for each byte, where operations on flags would be most of the work
        self.checks, self.is_endless, self.is_keys = (
            flag in watch for flag in (Watch.CHECK, Watch.ENDLESS, Watch.KEYS)
        )
        self.records = self.checks and Watch.SEARCH not in watch
        self.start = self.depth = 0
        self.node: Node | None = None
        self.exits: _Exits = None
        self._near: tuple[Spelled, ...] = ()
        self.is_mixed = False

    def copy(self) -> Frame:
        other = Frame.__new__(Frame)
        other.watch, other.records = self.watch, self.records
        other.checks, other.is_endless, other.is_keys = self.checks, self.is_endless, self.is_keys
        other.used, other.phase, other.start, other.depth = self.used, self.phase, self.start, self.depth
        other.node, other.exits, other.is_mixed, other._near = self.node, self.exits, self.is_mixed, self._near
        return other

    def begin(self, start: int) -> None:
        self.phase, self.start, self.node, self.exits, self.is_mixed = Phase.ITEM, start, self.used.root, None, False
        self._near = self.used.values

    def near(self, begun: bytes, ahead: int) -> list[Spelled]:
        """The values that the item may still come to mean, in any spelling; those with more than `ahead` bytes to go
        only where they are searched for."""
        if not self._near:
            return []
        found, later = [], []
        for spelled in self._near:
            if not spelled.is_searched and spelled.size > len(begun) + ahead:
                later.append(spelled)
            elif spelled.endings(begun) is not None:
                found.append(spelled)
        self._near = (*later, *found)
        return found

    def step(self, byte: int, allowed: int) -> int:
        """Take one byte of the item, before which `allowed` were; returns those that are allowed around the frame."""
        self.exits = (self.exits, allowed) if self.records else None
        if self.node is not None:
            allowed &= ~self.node.kills
            self.node = self.node.children.get(byte)
        return allowed

    def finish(self, item: bytes) -> bool:
        """The item is whole; False when it equals another one."""
        by_value = Watch.VALUE in self.watch
        value = parse(item) if by_value else None
        name = key(value) if by_value else item
        if name in self.used.keys:
            return False
        self.used = self.used.add(name, item, self._listed() if self.records else None)
        grows, searches = Watch.GROWS in self.watch, Watch.SEARCH in self.watch
        if isinstance(value, list | dict):
            self._spell(value, searches or (self.is_mixed and not grows), len(item))
        elif isinstance(value, Decimal):
            self._spell(value, True, len(padded(value)[0]))
        elif searches:
            self._spell(parse(item), True, len(item))
        self.phase = Phase.AFTER
        return True

    def _spell(self, value: Any, is_searched: bool, size: int) -> None:
        self.used = self.used.add_value(Spelled(value, is_searched, size, form(value)))

    def _listed(self) -> list[int]:
        listed: list[int] = []
        exits = self.exits
        while exits is not None:
            exits, allowed = exits
            listed.append(allowed)
        return listed[::-1]
