"""A bounded queue that serves its clients in turns, so that one with many jobs does not make the others wait."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Thread-safe. Items of one client leave in order of arrival; clients that wait are served one item each in turn.

    most: items that may wait, at least 1.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: OrderedDict[str, deque[T]] = OrderedDict()
        self._changed = threading.Condition()
        self._num_items = 0
        self._closed = False

    def __len__(self) -> int:
        return self._num_items

    def put(self, client: str, item: T) -> T | None:
        """Add an item. When the queue is full, the newest of the client that has the most waiting is returned, which
        may be this one; so is this one after `close`."""
        with self._changed:
            if self._closed:
                return item
            self._waiting.setdefault(client, deque()).append(item)
            self._num_items += 1
            dropped = self._drop() if self._num_items > self._most else None
            self._changed.notify()
            return dropped

    def take(self) -> T | None:
        """The next item, waited for; None once the queue is closed."""
        with self._changed:
            while not self._waiting and not self._closed:
                self._changed.wait()
            if self._closed:
                return None
            client, items = self._waiting.popitem(last=False)
            item = items.popleft()
            self._num_items -= 1
            if items:
                self._waiting[client] = items
            return item

    def close(self) -> list[T]:
        """What still waits; nothing is taken from now on."""
        with self._changed:
            self._closed = True
            left = [item for items in self._waiting.values() for item in items]
            self._waiting.clear()
            self._num_items = 0
            self._changed.notify_all()
            return left

    def _drop(self) -> T:
        client = max(self._waiting, key=lambda name: len(self._waiting[name]))
        items = self._waiting[client]
        self._num_items -= 1
        item = items.pop()
        if not items:
            del self._waiting[client]
        return item
