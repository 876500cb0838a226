"""What a killed worker means for the constraint that it worked on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from guided_grammar.errors import LimitExceeded, UnsupportedConstraint
from guided_grammar.worker import WorkerDied, WorkerTimeout

R = TypeVar("R")


@dataclass(frozen=True)
class Kills:
    """Workers lost so far: over their clock, out of memory, by a crash or a signal from outside."""

    time: int = 0
    memory: int = 0
    crash: int = 0

    @property
    def total(self) -> int:
        return self.time + self.memory + self.crash

    def __add__(self, other: Kills) -> Kills:
        return Kills(self.time + other.time, self.memory + other.memory, self.crash + other.crash)


class Losses:
    """Thread-safe count of the workers that `bounded` lost."""

    def __init__(self) -> None:
        self._lock, self._kills = threading.Lock(), Kills()

    @property
    def kills(self) -> Kills:
        return self._kills

    def bounded(self, act: Callable[[], R], stage: str, seconds: float, memory_bytes: int) -> R:
        """`act()`, once more when its worker was lost to a signal, which may not have been its own fault.

        Raises LimitExceeded naming the stage's milliseconds or memory bytes, UnsupportedConstraint after two crashes,
        and whatever else `act` raises.
        """
        try:
            return self._counted(act, stage, seconds, memory_bytes)
        except WorkerDied:
            pass
        try:
            return self._counted(act, stage, seconds, memory_bytes)
        except WorkerDied as error:
            raise UnsupportedConstraint(f"{stage} crashed twice: {error}") from None

    def _counted(self, act: Callable[[], R], stage: str, seconds: float, memory_bytes: int) -> R:
        try:
            return act()
        except WorkerTimeout:
            self._add(Kills(time=1))
            raise LimitExceeded(f"{stage} milliseconds", int(seconds * 1000), None) from None
        except WorkerDied as error:
            if error.out_of_memory:
                self._add(Kills(memory=1))
                raise LimitExceeded(f"{stage} memory bytes", memory_bytes, None) from None
            self._add(Kills(crash=1))
            raise

    def _add(self, more: Kills) -> None:
        with self._lock:
            self._kills += more
