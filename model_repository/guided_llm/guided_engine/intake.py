"""Tensors to a request: decoding, limits, tokenization and the grammar, off the engine's thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from guided_grammar.errors import GrammarError
from guided_grammar.pool import PoolBusy, PoolClosed
from numpy.typing import NDArray

from guided_engine.engine import Engine
from guided_engine.grammars import Constrained, Grammars
from guided_engine.metrics import Metrics
from guided_engine.protocol import INPUT_IDS, TEXT_INPUT, Event, GenerateRequest, RequestError, check_context
from guided_engine.request import Request, Sink, Timings
from guided_engine.tokenizer import Tokenizer

_READERS = 1
# they wait for workers, in turns of their clients; one that cannot wait here would stand in line behind all others
_COMPILERS = 32


@dataclass
class Pending:
    """A request on its way through the intake."""

    sink: Sink
    timings: Timings = field(default_factory=Timings)


class Intake:
    """Checks a request against what the engine can serve and submits it; every refusal closes its sink.

    max_len: tokens that prompt and answer may have together. max_pending: requests that may be on their way through
    here; the engine's own queue comes on top.
    """

    def __init__(
        self,
        engine: Engine,
        tokenizer: Tokenizer,
        grammars: Grammars,
        metrics: Metrics,
        *,
        max_len: int,
        max_choices: int,
        stop_ids: frozenset[int],
        max_pending: int,
        jump_forward: bool,
    ) -> None:
        self._engine, self._tokenizer, self._grammars, self._metrics = engine, tokenizer, grammars, metrics
        self._max_len, self._max_choices = max_len, max_choices
        self._stop_ids, self._jump_forward = stop_ids, jump_forward
        self._max_pending, self._num_pending = max_pending, 0
        self._lock = threading.Lock()
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="guided-reader")
        # apart from the readers: a compile may take seconds, and free requests don't wait for it
        self._compilers = ThreadPoolExecutor(_COMPILERS, thread_name_prefix="guided-compiler")

    def accept(self, tensors: Mapping[str, NDArray[Any]], sink: Sink) -> None:
        """Returns at once; the sink hears the rest."""
        with self._lock:
            full = self._num_pending >= self._max_pending
            self._num_pending += not full
        if full:
            limit = f"limit is {self._max_pending}, got {self._max_pending + 1}"
            sink.close(RequestError(f"too many requests are being read: {limit}", 429))
            return
        pending = Pending(sink)
        self._submit(self._readers, pending, lambda: self._read(tensors, pending))

    def stop(self) -> None:
        """Refuse what is on its way, then end the threads."""
        for pool in (self._readers, self._compilers):
            pool.shutdown(wait=True, cancel_futures=True)

    def _submit(self, pool: ThreadPoolExecutor, pending: Pending, act: Callable[[], bool]) -> None:
        """Run `act` on the pool; it returns whether the request has left the intake."""
        try:
            pool.submit(act).add_done_callback(lambda future: self._done(future, pending))
        except RuntimeError:
            pending.sink.close(_shutting_down())

    def _done(self, future: Future[bool], pending: Pending) -> None:
        error = _error_of(future)
        if error is not None:
            pending.sink.close(error)
        if error is not None or future.result():
            with self._lock:
                self._num_pending -= 1

    def _read(self, tensors: Mapping[str, NDArray[Any]], pending: Pending) -> bool:
        asked = GenerateRequest.decode(tensors)
        prompt = list(asked.input_ids) if asked.input_ids is not None else self._tokenizer.encode(asked.text or "")
        max_tokens = self._max_tokens(prompt, asked)
        self._check(prompt, asked)
        if not asked.exclude_input:
            pending.sink.send(Event(0, text=asked.text if asked.text is not None else self._text(prompt)))

        def enter(constrained: Constrained | None) -> bool:
            request = Request(
                prompt,
                asked.sampling,
                pending.sink,
                max_tokens=max_tokens,
                stop_ids=self._stop_ids,
                pieces=self._tokenizer.pieces(
                    frozenset(asked.sampling.shown_tokens) | (constrained.markers if constrained else frozenset())
                ),
                drops_space=self._tokenizer.drops_space,
                matchers=constrained.matchers if constrained else None,
                jump_forward=self._jump_forward and asked.sampling.jump_forward,
                timings=pending.timings,
                context=self._max_len,
            )
            self._engine.submit(request)
            self._metrics.accepted(constrained is not None)
            return True

        if not asked.constraint:
            return enter(None)
        self._submit(self._compilers, pending, lambda: enter(self._constrained(asked, pending.timings)))
        return False

    def _constrained(self, asked: GenerateRequest, timings: Timings) -> Constrained | None:
        started = time.monotonic()
        try:
            constrained = self._grammars.matchers(asked.constraint, asked.sampling.n, asked.sampling.client)
        except GrammarError as error:
            self._metrics.refused()
            raise RequestError(error.message, 400, "constraint", error.to_dict()) from None
        except (PoolBusy, PoolClosed) as error:
            raise RequestError(str(error), 503) from None
        timings.compile = time.monotonic() - started
        if constrained is not None:
            self._metrics.compiled(timings.compile, self._grammars.stats)
        return constrained

    def _max_tokens(self, prompt: list[int], asked: GenerateRequest) -> int:
        field = TEXT_INPUT if asked.text is not None else INPUT_IDS
        if not prompt:
            raise RequestError("the prompt is empty", param=field)
        wanted = asked.sampling.max_tokens
        check_context(self._max_len, len(prompt), wanted, field, "max_tokens")
        return wanted or self._max_len - len(prompt)

    def _check(self, prompt: list[int], asked: GenerateRequest) -> None:
        size, sampling = self._tokenizer.vocabulary.vocab_size, asked.sampling
        for name, ids in (
            (INPUT_IDS, prompt),
            ("stop_token_ids", sampling.stop_token_ids),
            ("logit_bias", sampling.logit_bias),
        ):
            outside = [i for i in ids if not 0 <= i < size]
            if outside:
                raise RequestError(f"{name}: the vocabulary has {size} ids, got id {outside[0]}", param=name)
        if sampling.n > self._max_choices:
            raise RequestError(f"n limit is {self._max_choices}, got {sampling.n}", param="n")

    def _text(self, prompt: list[int]) -> str:
        pieces = self._tokenizer.pieces()
        return b"".join(pieces[i] for i in prompt).decode("utf-8", "replace")


def _error_of(future: Future[bool]) -> RequestError | None:
    if future.cancelled():
        return _shutting_down()
    error = future.exception()
    if error is None or isinstance(error, RequestError):
        return error
    return RequestError(f"{type(error).__name__}: {error}", 500)


def _shutting_down() -> RequestError:
    return RequestError("the model is shutting down", 503)
