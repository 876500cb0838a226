"""What one choice's grammar costs the step, and how much it may."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PER_TOKEN = 0.005


class Meter:
    """CPU seconds of one choice's masks. Owned by the step's thread.

    seconds: what the choice may spend beyond `PER_TOKEN` for each of its tokens; 0 is no bound. now: the clock.
    """

    def __init__(self, seconds: float, now: Callable[[], float] = time.thread_time) -> None:
        self._seconds, self._now = seconds, now
        self.spent = 0.0
        self.num_masks = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        """The time inside belongs to this choice."""
        started = self._now()
        try:
            yield
        finally:
            self.spent += self._now() - started

    @property
    def limit(self) -> float:
        """Seconds that the masks so far may have taken; infinite without a bound."""
        return self._seconds + PER_TOKEN * self.num_masks if self._seconds else float("inf")

    @property
    def is_over(self) -> bool:
        return self.spent > self.limit
