"""Checks constraints before the model is asked: off the event loop, in killable processes, remembered."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from guided_grammar.check import Report
from guided_grammar.errors import GrammarError
from guided_grammar.limits import Limits
from guided_grammar.pool import CompilePool, PoolBusy, PoolClosed
from guided_grammar.spec import FREE, GrammarSpec, Kind
from guided_grammar.worker import Worker, WorkerDied, WorkerTimeout

from guided_frontend.errors import OVERLOAD, REFUSED, BadRequest, Busy, Unavailable, of_grammar

_LOG = logging.getLogger("guided_frontend")
_REMEMBERED = 4096
_CALLERS_PER_WORKER = 16
_CHECK = "guided_grammar.check:check"
_REPORT_BYTES = 2 << 30


@dataclass(frozen=True)
class Checked:
    """A constraint that compiles. seconds: what the check took, 0 when it was remembered. size: bytes of grammar."""

    seconds: float
    size: int


class ConstraintChecker:
    """Owns the compile processes. `workers` of them, each compile at most `timeout` seconds."""

    def __init__(self, limits: Limits, workers: int, timeout: float) -> None:
        self._pool = CompilePool(limits, workers, timeout)
        self._limits, self._timeout = limits, timeout
        self._reporter, self._reporting = Worker(_REPORT_BYTES), threading.Lock()
        self._most = workers * _CALLERS_PER_WORKER
        self._callers = ThreadPoolExecutor(self._most, thread_name_prefix="compile")
        self._num_running = 0
        self._known: OrderedDict[str, int] = OrderedDict()

    def warm_up(self) -> None:
        """Starts a process, so that the first request does not wait for it."""
        self._callers.submit(self._pool.compile, GrammarSpec(Kind.CHOICE, ["a"]))

    async def check(self, spec: GrammarSpec, field: str) -> Checked:
        """Raises BadRequest naming `field` when the constraint is refused, Busy when too many compile already."""
        if spec.kind is FREE.kind:
            return Checked(0.0, 0)
        key = spec.key
        size = self._known.get(key)
        if size is not None:
            self._known.move_to_end(key)
            return Checked(0.0, size)
        if self._num_running >= self._most:
            raise Busy("too many constraints are being compiled; try again", label=OVERLOAD)
        start = time.perf_counter()
        self._num_running += 1
        try:
            size = await asyncio.get_running_loop().run_in_executor(self._callers, self._compile, spec, field)
        finally:
            self._num_running -= 1
        self._known[key] = size
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return Checked(time.perf_counter() - start, size)

    def _compile(self, spec: GrammarSpec, field: str) -> int:
        try:
            return len(self._pool.compile(spec).text)
        except GrammarError as error:
            raise of_grammar(error, field) from None
        except PoolBusy as error:
            raise Busy(str(error), label=OVERLOAD) from None
        except PoolClosed:
            raise Unavailable("the server is shutting down") from None
        except RuntimeError as error:
            # A fault of the compiler: the constraint is refused like any other that cannot be enforced, and told here.
            _LOG.error("the compiler failed on %s: %s", field, error)
            raise BadRequest(f"{field}: this constraint cannot be compiled", field, label=REFUSED) from None

    async def report(self, spec: GrammarSpec) -> Report:
        """What a pre-flight check finds; a check that takes too long or too much memory is a refusal, too."""
        return await asyncio.get_running_loop().run_in_executor(self._callers, self._report, spec)

    def _report(self, spec: GrammarSpec) -> Report:
        with self._reporting:
            try:
                found: Report = self._reporter.call(_CHECK, spec, self._limits, seconds=self._timeout)
            except (WorkerTimeout, WorkerDied) as error:
                return Report("refused", "", "", f"the check was stopped: {error}", None, self._timeout * 1e3, 0)
            return found

    def close(self) -> None:
        self._pool.close()
        with self._reporting:
            self._reporter.close()
        self._callers.shutdown(wait=False, cancel_futures=True)
