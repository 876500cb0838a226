"""Checks constraints before the model is asked: off the event loop, in killable processes, remembered."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from guided_grammar.check import Report
from guided_grammar.compiler import Compiled
from guided_grammar.errors import GrammarError
from guided_grammar.limits import Limits
from guided_grammar.pool import CompilePool, PoolBusy, PoolClosed, PoolStats
from guided_grammar.spec import FREE, GrammarSpec, Kind
from guided_grammar.worker import Worker, WorkerDied, WorkerTimeout

from guided_frontend.errors import OVERLOAD, REFUSED, BadRequest, Busy, Unavailable, of_grammar

_LOG = logging.getLogger("guided_frontend")
_CHECK = "guided_grammar.check:check"
_REPORT_BYTES = 2 << 30
_WARM_UP: dict[Kind, Any] = {
    Kind.CHOICE: ["a"],
    Kind.REGEX: "a+",
    Kind.GBNF: 'root ::= "a"',
    Kind.JSON_SCHEMA: {"schema": {"type": "integer"}},
}


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
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="report")

    @property
    def stats(self) -> PoolStats:
        return self._pool.stats

    def warm_up(self) -> None:
        """Compiles one of each kind that a request may carry: the first does not wait for a process, and an
        installation that compiles nothing is told in the log at its start."""
        for kind, value in _WARM_UP.items():
            self._pool.submit(GrammarSpec(kind, value)).add_done_callback(_tell)

    async def check(self, spec: GrammarSpec, field: str, client: str = "") -> Checked:
        """Raises BadRequest naming `field` when the constraint is refused, Busy when too many compile already.

        client: where many wait, clients take turns.
        """
        if spec.kind is FREE.kind:
            return Checked(0.0, 0)
        start = time.perf_counter()
        try:
            future = self._pool.submit(spec, client)
            remembered = future.done()
            compiled = await _result(future, self._pool.wait)
            return Checked(0.0 if remembered else time.perf_counter() - start, len(compiled.text))
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
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._report, spec)

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
        self._threads.shutdown(wait=False, cancel_futures=True)


async def _result(future: Future[Compiled], wait: float) -> Compiled:
    """What `guided_grammar.crew.result_of` gives, without a thread that waits."""
    if future.done():
        return future.result()
    result = asyncio.wrap_future(future)
    # a client that leaves must not end a compile that others share; nor is its outcome then an error of nobody's
    result.add_done_callback(lambda done: None if done.cancelled() else done.exception())
    try:
        return await asyncio.wait_for(asyncio.shield(result), wait)
    except asyncio.TimeoutError:
        if future.cancel():
            raise PoolBusy(f"no worker was free for {wait:g} s") from None
        return await asyncio.shield(result)
    except asyncio.CancelledError:
        if future.cancelled():
            raise PoolBusy(f"no worker was free for {wait:g} s") from None
        raise


def _tell(done: Future[Compiled]) -> None:
    error = None if done.cancelled() else done.exception()
    if error is not None and not isinstance(error, PoolClosed):
        _LOG.error("constraints cannot be compiled here: %s: %s", type(error).__name__, error)
