"""The items that a container already holds."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Any

from guided_grammar.watch.equal import endings, key, padded, parse


class Used:
    """Finished items of one container. Never changes; `add` makes a new one.

    keys: what no further item may equal. live: positions known not to be at a dead end, by the beginning written.
    """

    __slots__ = ("_texts", "_values", "keys", "live")

    def __init__(self, keys: frozenset[Any] = frozenset(), texts: tuple[bytes, ...] = (), values: tuple[Any, ...] = ()):
        self.keys, self._texts, self._values = keys, texts, values
        self.live: set[bytes] = set()

    def add(self, item: bytes, by_value: bool, keeps: bool) -> Used | None:
        """With one item more; None when it equals one of them. keeps: what was live before stays so, but for the
        beginnings of `item`."""
        value = parse(item) if by_value else None
        name = key(value) if by_value else item
        if name in self.keys:
            return None
        texts = list(self._texts)
        for text in _paths(item, value) if by_value else (item,):
            insort(texts, text)
        values = (*self._values, value) if isinstance(value, list | dict) else self._values
        used = Used(self.keys | {name}, tuple(texts), values)
        if keeps and not by_value:
            used.live = {text for text in self.live if not item.startswith(text.lstrip(b", "))}
        return used

    def texts(self, begun: bytes) -> list[bytes]:
        """Used texts that begin like this, those of numbers also with zeros behind their point."""
        found = []
        at = bisect_left(self._texts, begun)
        while at < len(self._texts) and self._texts[at].startswith(begun):
            found.append(self._texts[at])
            at += 1
        return found

    def rests(self, begun: bytes) -> list[bytes]:
        """How `begun` may go on towards the text or value of a used item."""
        rests = [text[len(begun) :] for text in self.texts(begun)]
        for value in self._values:
            rests += endings(begun, value) or ()
        return rests

    def is_near(self, begun: bytes) -> bool:
        """Whether `begun` is a beginning of a used item, in any spelling."""
        at = bisect_left(self._texts, begun)
        if at < len(self._texts) and self._texts[at].startswith(begun):
            return True
        return any(endings(begun, value) is not None for value in self._values)


NONE = Used()


def _paths(item: bytes, value: Any) -> list[bytes]:
    if isinstance(value, bool) or value is None or isinstance(value, str | list | dict):
        return [item]
    return padded(value)
