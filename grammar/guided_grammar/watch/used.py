"""The items that a container already holds: what they equal, and which beginnings lead only to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from guided_grammar.watch.equal import Form, endings

ALL_BYTES = (1 << 256) - 1
_ENDS = 1 << ord(",") | 1 << ord("]")


class Node:
    """A beginning of used items, by bytes. Never changes.

    kills: bytes (bits) that lead on only to used items. live: an item that is not used may still come of it.
    is_bare: of a number or word, which a comma or bracket ends. exits: the bytes that the grammar allows here.
    """

    __slots__ = ("children", "exits", "is_used", "kills", "live")

    def __init__(self, children: dict[int, Node], exits: int, is_bare: bool, is_used: bool) -> None:
        self.children, self.exits, self.is_used = children, exits, is_used
        self.kills = 0
        for byte, child in children.items():
            if not child.live:
                self.kills |= 1 << byte
        if is_bare and is_used:
            self.kills |= _ENDS
        self.live: bool = bool(exits & ~self.kills)


LEAF = Node({}, 0, False, True)
ROOT = Node({}, ALL_BYTES, False, False)


def bits_of(value: int) -> Iterator[int]:
    """The positions of the set bits of a number, ascending."""
    while value:
        lowest = value & -value
        yield lowest.bit_length() - 1
        value ^= lowest


def _grown(root: Node, item: bytes, exits: Sequence[int] | None) -> Node:
    """With one item more. exits: what was allowed before each of its bytes and behind it, None where all always are."""
    is_bare = item[0] not in b'"[{'
    path: list[Node | None] = [root]
    for byte in item:
        last = path[-1]
        path.append(None if last is None else last.children.get(byte))
    end = path.pop()
    node = LEAF
    if is_bare:
        node = Node({} if end is None else end.children, ALL_BYTES if exits is None else exits[-1], True, True)
    for index in range(len(item) - 1, -1, -1):
        old = path[index]
        children = {item[index]: node} if old is None else {**old.children, item[index]: node}
        allowed = ALL_BYTES if exits is None else exits[index] if index else exits[0] & ~_ENDS
        node = Node(children, allowed, is_bare and index > 0, old is not None and old.is_used)
    return node


@dataclass(frozen=True, slots=True)
class Spelled:
    """A used value that other texts than its own may mean. is_searched: they may leave nothing but themselves.

    size: bytes of its text; no text of it is shorter.
    """

    value: Any
    is_searched: bool
    size: int
    form: Form

    def endings(self, begun: bytes) -> list[bytes] | None:
        """How `begun` may go on towards the value, None when it cannot come to mean it."""
        return endings(begun, self.form)


class Used:
    """Finished items of one container. Never changes; `add` makes a new one.

    keys: what no further item may equal. root: their texts. values: those that may be spelled otherwise.
    live, barren: beginnings of other spellings that were found to lead on, and not to.
    """

    __slots__ = ("barren", "is_searched", "keys", "live", "root", "values")

    def __init__(self, keys: frozenset[Any] = frozenset(), root: Node = ROOT, values: tuple[Spelled, ...] = ()) -> None:
        self.keys, self.root, self.values = keys, root, values
        self.is_searched = any(spelled.is_searched for spelled in values)
        self.live: set[bytes] = set()
        self.barren: set[bytes] = set()

    def add(self, name: Any, item: bytes, exits: Sequence[int] | None) -> Used:
        """With one item more. exits: as of `Node`, before each byte of it and behind it; None where all always are."""
        return Used(self.keys | {name}, _grown(self.root, item, exits), self.values)

    def add_value(self, spelled: Spelled) -> Used:
        """With another way to look at an item that is in it."""
        return Used(self.keys, self.root, (*self.values, spelled))


NOTHING_USED = Used()
