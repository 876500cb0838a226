"""The loop: requests in, events out."""

from __future__ import annotations

import threading
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from guided_grammar.batch import StepMasks

from guided_engine.batch import Batch
from guided_engine.metrics import Metrics, StageClock
from guided_engine.protocol import Event, RequestError
from guided_engine.request import Choice, Request
from guided_engine.sampling import Drawn, draw
from guided_engine.scheduler import Scheduler

_IDLE_SECONDS = 0.2
_FAULTS = {1: "the constraint leaves no token", 2: "the model's logits are not numbers"}


class ForwardPass(Protocol):
    def forward(self, batch: Batch) -> torch.Tensor: ...

    def logits(self, state: torch.Tensor, masks: StepMasks | None, choices: Sequence[Choice]) -> torch.Tensor: ...


class MaskSource(Protocol):
    def fill(self, choices: Sequence[Choice]) -> StepMasks | None: ...


@dataclass(frozen=True)
class Output:
    """What a step added to one request: an event, or the error that ends it."""

    request: Request
    event: Event | None = None
    error: RequestError | None = None


class Engine:
    """Runs requests to their end on its own thread. `submit` may be called from any thread."""

    def __init__(
        self,
        scheduler: Scheduler,
        runner: ForwardPass,
        grammars: MaskSource,
        queue_size: int,
        metrics: Metrics,
        report: Callable[[str], None],
        clock: StageClock | None = None,
    ) -> None:
        self._scheduler, self._runner, self._grammars, self._metrics = scheduler, runner, grammars, metrics
        self._queue_size, self._report = queue_size, report
        self._inbox: deque[Request] = deque()
        self._open: set[Request] = set()
        self._wake = threading.Condition()
        self._closing = False
        self._clock = clock or StageClock()
        self._fault: str | None = None
        self._thread = threading.Thread(target=self._run, name="guided-engine", daemon=True)

    @property
    def is_healthy(self) -> bool:
        return self._fault is None and self._thread.is_alive()

    def start(self) -> None:
        self._thread.start()

    def submit(self, request: Request) -> None:
        """Raises RequestError: 429 when the queue is full, 503 when the engine is not running."""
        with self._wake:
            if self._closing or self._fault:
                raise RequestError(self._fault or "the model is shutting down", 503)
            waiting = len(self._inbox) + self._scheduler.num_waiting
            if waiting >= self._queue_size:
                raise RequestError(f"queue is full: limit is {self._queue_size}, got {waiting + 1}", 429)
            self._inbox.append(request)
            self._wake.notify()

    def stop(self, timeout: float) -> None:
        """End what runs with 503 and join the thread."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join(timeout)

    def step(self) -> list[Output]:
        """One token, or one forced run, for every running row that has read its prompt."""
        batch = self._scheduler.next_batch()
        ended = self._ended()
        self._clock.lap("schedule")
        if batch is None:
            return ended
        state = self._runner.forward(batch)
        self._clock.lap("forward")
        masks = self._grammars.fill(batch.drawing)
        self._clock.lap("mask")
        logits = self._runner.logits(state, masks, batch.drawing)
        self._clock.lap("head")
        drawn = draw(logits, masks, batch.drawing)
        self._clock.lap("sample")
        return ended + self._commit(batch, drawn)

    def step_and_deliver(self) -> None:
        """One step, its events handed to their sinks, its figures to the metrics."""
        self._clock.start()
        outputs = self.step()
        self._deliver(outputs)
        self._clock.lap("commit")
        self._metrics.step(self._scheduler, outputs, self._clock.take())

    def _ended(self) -> list[Output]:
        """What the scheduler ended without a step."""
        finished = [Output(c.request, c.report()) for c in self._scheduler.take_finished()]
        return finished + [Output(request, error=error) for request, error in self._scheduler.take_dropped()]

    def _commit(self, batch: Batch, drawn: Drawn) -> list[Output]:
        for choice, chunk in zip(batch.rows, batch.chunks, strict=True):
            choice.cache(len(chunk))
        outputs = []
        for choice, token, status, logprob in zip(
            batch.drawing, drawn.tokens, drawn.status, drawn.logprobs, strict=True
        ):
            try:
                if status:
                    raise RequestError(_FAULTS[status], 500)
                outputs.append(Output(choice.request, choice.advance(token, logprob)))
            except RequestError as error:
                outputs.append(Output(choice.request, error=error))
            except Exception as error:
                # a matcher that fails ends its own request, not everybody's
                self._report("".join(traceback.format_exception(error)))
                outputs.append(Output(choice.request, error=RequestError(f"{type(error).__name__}: {error}", 500)))
            if choice.is_finished:
                self._scheduler.leave(choice)
        return outputs

    def _run(self) -> None:
        try:
            while self._take_inbox():
                self.step_and_deliver()
            self._end_all(RequestError("the model is shutting down", 503))
        except BaseException as error:
            with self._wake:
                self._fault = f"the engine stopped: {type(error).__name__}: {error}"
            self._report("".join(traceback.format_exception(error)))
            self._metrics.fault()
            self._end_all(RequestError(self._fault, 500))

    def _take_inbox(self) -> bool:
        """Move new requests to the scheduler, waiting while there is nothing to do; False when the engine closes."""
        with self._wake:
            while not self._inbox and not self._closing and not self._scheduler.num_running:
                if self._scheduler.num_waiting:
                    break
                self._wake.wait(_IDLE_SECONDS)
            while self._inbox:
                self._open.add(self._inbox[0])
                self._scheduler.add(self._inbox.popleft())
            return not self._closing

    def _deliver(self, outputs: list[Output]) -> None:
        """Events first, then the ends: choices of one request may finish in the same step."""
        errors: dict[Request, RequestError | None] = {}
        for output in outputs:
            if output.error is not None:
                self._scheduler.remove(output.request)
                errors.setdefault(output.request, output.error)
        for output in outputs:
            if output.event is not None and output.request not in errors:
                output.request.sink.send(output.event)
        errors |= {o.request: None for o in outputs if o.request.is_finished and o.request not in errors}
        for request, error in errors.items():
            self._open.discard(request)
            request.sink.close(error)

    def _end_all(self, error: RequestError) -> None:
        with self._wake:
            # _open too: a step that raised may have taken requests out of the scheduler without telling them
            left = self._open | set(self._scheduler.requests) | set(self._inbox)
            self._inbox.clear()
        for request in left:
            request.sink.close(error)
