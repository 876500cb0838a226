"""Grammar text proven in a process that can be killed, before it is let into the engine's own.

xgrammar can neither be interrupted nor bounded in memory. So every new grammar is compiled, started and walked once in
a worker with a clock and a bound on its address space; what finishes there finishes in the engine too, at that cost.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import queue
import threading
import time
from collections import OrderedDict
from functools import cache
from typing import TYPE_CHECKING

from guided_grammar.errors import GrammarError, LimitExceeded, UnsupportedConstraint
from guided_grammar.limits import Limits
from guided_grammar.pool import PoolBusy
from guided_grammar.vocabulary import Vocabulary
from guided_grammar.worker import Worker, WorkerDied, WorkerTimeout

if TYPE_CHECKING:
    from guided_grammar.session import MaskEngine

_KEPT = 4096
_TIRED_SECONDS = 0.9
_Key = tuple[bytes, frozenset[str]]
_LOAD_SECONDS = 60.0
_NICE = 5


class Prover:
    """Thread-safe; `lazy` blocks its caller. Verdicts are remembered, refusals too.

    workers: processes, each with the vocabulary in it. seconds: wall clock of one proof. memory_bytes: address space
    of a worker, its libraries included. wait: seconds for a free worker before PoolBusy.
    num_kills: workers lost to a grammar so far.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        limits: Limits,
        workers: int = 1,
        seconds: float = 4.0,
        memory_bytes: int = 3 << 30,
        wait: float = 4.0,
    ) -> None:
        self._seconds, self._memory_bytes, self._wait = seconds, memory_bytes, wait
        self._workers = [_Loaded(Worker(memory_bytes), vocabulary, limits) for _ in range(workers)]
        self._free: queue.LifoQueue[_Loaded] = queue.LifoQueue()
        self._lock = threading.Lock()
        self._known: OrderedDict[_Key, bool | GrammarError] = OrderedDict()
        self._reloads: set[threading.Thread] = set()
        self._closed = False
        self.num_kills = 0
        for worker in self._workers:
            worker.load()
            self._free.put(worker)

    def lazy(self, text: str, markers: frozenset[str]) -> bool:
        """The verdict of `MaskEngine.judge`, reached in a worker. Raises its GrammarError, LimitExceeded for a proof
        over `seconds` or `memory_bytes`, PoolBusy."""
        key = (hashlib.sha256(text.encode()).digest(), markers)
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
        verdict = self._prove(text, markers) if known is None else known
        with self._lock:
            self._known[key] = verdict
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
        if isinstance(verdict, GrammarError):
            raise verdict
        return verdict

    def close(self) -> None:
        """Kill the workers, those that are just coming back included."""
        with self._lock:
            self._closed = True
            reloads = set(self._reloads)
        for worker in self._workers:
            worker.close()
        for thread in reloads:
            thread.join()

    def _prove(self, text: str, markers: frozenset[str]) -> bool | GrammarError:
        try:
            worker = self._free.get(timeout=self._wait)
        except queue.Empty:
            raise PoolBusy(f"no grammar worker was free for {self._wait:g} s") from None
        try:
            return worker.judge(text, markers, self._seconds)
        except GrammarError as error:
            return error
        except WorkerTimeout:
            self._count_kill()
            return LimitExceeded("grammar proof milliseconds", int(self._seconds * 1000), None)
        except WorkerDied:
            self._count_kill()
            return LimitExceeded("grammar proof memory bytes", self._memory_bytes, None)
        finally:
            self._give_back(worker)

    def _count_kill(self) -> None:
        with self._lock:
            self.num_kills += 1

    def _give_back(self, worker: _Loaded) -> None:
        """A lost worker reads its vocabulary again before anybody waits for it."""
        if worker.is_ready:
            self._free.put(worker)
            return
        thread = threading.Thread(target=self._reload, args=(worker,), name="grammar-worker", daemon=True)
        with self._lock:
            if self._closed:
                return
            self._reloads.add(thread)
        thread.start()

    def _reload(self, worker: _Loaded) -> None:
        # a worker that does not start is tried again by the next proof that takes it
        with contextlib.suppress(WorkerDied, WorkerTimeout):
            worker.load()
        with self._lock:
            self._reloads.discard(threading.current_thread())
            closed = self._closed
        if closed:
            worker.close()
        else:
            self._free.put(worker)


class _Loaded:
    """A worker that has read the vocabulary. Not thread-safe."""

    def __init__(self, worker: Worker, vocabulary: Vocabulary, limits: Limits) -> None:
        self._worker, self._vocabulary, self._limits = worker, vocabulary, limits
        self.is_ready = False

    def load(self) -> None:
        if not self.is_ready:
            self._worker.call("guided_grammar.proof:load", self._vocabulary, self._limits, seconds=_LOAD_SECONDS)
            self.is_ready = True

    def judge(self, text: str, markers: frozenset[str], seconds: float) -> bool:
        self.load()
        started = time.monotonic()
        try:
            lazy: bool = self._worker.call("guided_grammar.proof:judge", text, markers, seconds=seconds)
        except (WorkerTimeout, WorkerDied):
            self.is_ready = False
            raise
        except GrammarError:
            self._rest(started)
            raise
        self._rest(started)
        return lazy

    def _rest(self, started: float) -> None:
        # a slow compile may go on in the background of the process; nothing but its end stops that
        if time.monotonic() - started > _TIRED_SECONDS:
            self.close()

    def close(self) -> None:
        self.is_ready = False
        self._worker.close()


def load(vocabulary: Vocabulary, limits: Limits) -> None:
    """In the worker: the mask engine that grammars are proven with, at low priority."""
    from guided_grammar.session import MaskEngine

    os.nice(_NICE)
    _engines().append(MaskEngine(vocabulary, limits, 0))


def judge(text: str, markers: frozenset[str]) -> bool:
    """In the worker: `MaskEngine.judge`; MemoryError, which ends the worker, past its bound."""
    try:
        return _engines()[0].judge(text, markers)
    except UnsupportedConstraint as error:
        if "bad_alloc" in error.reason:
            raise MemoryError from None
        raise


@cache
def _engines() -> list[MaskEngine]:
    return []
