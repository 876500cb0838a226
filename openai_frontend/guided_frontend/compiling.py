"""Checks constraints before the model is asked: off the event loop, bounded in time and number, remembered."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from guided_grammar.compiler import compile_spec
from guided_grammar.errors import GrammarError
from guided_grammar.limits import Limits
from guided_grammar.spec import GrammarSpec

from guided_frontend.errors import BadRequest, Busy, of_grammar

_REMEMBERED = 4096


@dataclass(frozen=True)
class Checked:
    """Outcome of one check. `seconds`: what it took when it was not remembered."""

    seconds: float
    error: GrammarError | None = None


class ConstraintChecker:
    """Owns the compile threads and the memory of outcomes."""

    def __init__(self, limits: Limits, workers: int, timeout: float) -> None:
        self._limits, self._timeout = limits, timeout
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="compile")
        self._slots = workers * 16
        self._running: dict[str, asyncio.Future[Checked]] = {}
        self._known: OrderedDict[str, Checked] = OrderedDict()

    async def check(self, spec: GrammarSpec, field: str) -> Checked:
        """Raises BadRequest naming `field` when the constraint is refused, Busy when too many compile already."""
        key = spec.key
        checked = self._known.get(key)
        if checked is None:
            checked = await self._compiled(key, spec, field)
        else:
            self._known.move_to_end(key)
        if checked.error is not None:
            raise of_grammar(checked.error, field)
        return checked

    async def _compiled(self, key: str, spec: GrammarSpec, field: str) -> Checked:
        """Equal constraints that arrive together compile once."""
        future = self._running.get(key)
        if future is None:
            if len(self._running) >= self._slots:
                raise Busy("too many constraints are being compiled; try again")
            future = asyncio.get_running_loop().run_in_executor(self._threads, self._compile, spec)
            self._running[key] = future
            future.add_done_callback(lambda done: self._remember(key, done))
        try:
            return await asyncio.wait_for(asyncio.shield(future), self._timeout)
        except asyncio.TimeoutError:
            raise BadRequest(f"{field}: compiling took more than {self._timeout:g} s", field, label="refused") from None

    def _compile(self, spec: GrammarSpec) -> Checked:
        start = time.perf_counter()
        try:
            compile_spec(spec, self._limits)
        except GrammarError as error:
            return Checked(time.perf_counter() - start, error)
        except RecursionError:
            return Checked(time.perf_counter() - start, GrammarError("nested too deeply to compile"))
        return Checked(time.perf_counter() - start)

    def _remember(self, key: str, done: asyncio.Future[Checked]) -> None:
        self._running.pop(key, None)
        if not done.cancelled() and done.exception() is None:
            self._known[key] = done.result()
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
