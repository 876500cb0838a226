"""An engine without transport, driven by hand, and what a run of it left."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from engine_cases import Case
from guided_engine.config import EngineConfig
from guided_engine.engine import Engine
from guided_engine.grammars import Grammars
from guided_engine.loading import Loaded, plan_cache
from guided_engine.metrics import Metrics, StageClock
from guided_engine.protocol import Event, RequestError, SamplingParams, encode_events
from guided_engine.request import Request
from guided_engine.runner import Runner
from guided_engine.sampling import prepare
from guided_engine.scheduler import Scheduler
from guided_grammar.compiler import Compiled, compile_spec
from guided_grammar.pool import PoolStats
from guided_grammar.spec import GrammarSpec

Clock = Callable[[], float]
CLOCKS: dict[str, Clock] = {"cpu": time.process_time, "wall": time.perf_counter}


class Stopwatch:
    """Seconds since `restart`; time in which there is nothing to do is passed over by `skip_to`."""

    def __init__(self, now: Clock) -> None:
        self._now = now
        self.restart()

    def __call__(self) -> float:
        return self._now() - self._start

    def restart(self) -> None:
        self._start = self._now()

    def skip_to(self, seconds: float) -> None:
        """Not before `seconds`."""
        self._start -= max(0.0, seconds - self())


class Tally:
    """A metrics backend that adds up."""

    def __init__(self) -> None:
        self.sums: Counter[str] = Counter()

    def set(self, name: str, value: float) -> None:
        pass

    def add(self, name: str, value: float) -> None:
        self.sums[name] += value  # type: ignore[assignment]

    def observe(self, name: str, value: float) -> None:
        pass


class InProcess:
    """Compiles specs here: the bench measures steps, not the worker processes."""

    stats = PoolStats()

    def compile(self, spec: GrammarSpec, client: str = "") -> Compiled:
        return compile_spec(spec)


@dataclass
class Ear:
    """A sink that encodes events as the model's senders do, and keeps text, usage and clock readings.

    encoding: seconds of that, which a served model spends on its senders' threads. added: when the engine got it.
    """

    clock: Clock
    cancelled: bool = False
    text: str = ""
    usage: dict[str, int] = field(default_factory=dict)
    times: list[float] = field(default_factory=list)
    encoding: float = 0.0
    added: float = 0.0
    error: RequestError | None = None

    def send(self, event: Event) -> None:
        started = self.clock()
        encode_events([event])
        self.text += event.text
        self.times.append(self.clock())
        self.encoding += self.times[-1] - started
        self.usage = dict(event.usage or {})

    def close(self, error: RequestError | None = None) -> None:
        self.error = error


@dataclass
class Run:
    """One arm: `tokens` generated in `seconds`; stages: seconds by stage; latencies: of each request."""

    seconds: float
    tokens: int
    steps: int
    ears: list[Ear]
    stages: dict[str, float]
    latencies: list[float]


class Rig:
    """An engine on one thread. clock: "cpu" (process time, for a busy machine) or "wall"."""

    def __init__(self, loaded: Loaded, config: EngineConfig, clock: str) -> None:
        self.loaded, self.config, self.clock = loaded, config, CLOCKS[clock]
        self.runner = Runner(loaded.model, plan_cache(config, loaded), loaded.dtype)
        self.grammars = Grammars(loaded.tokenizer.vocabulary, InProcess(), config.grammar_cache_bytes)
        prepare(self.runner.vocab_size, loaded.dtype, loaded.device)

    def run(self, cases: Sequence[Case], rows: int, jump_forward: bool, arrivals: Sequence[float] = ()) -> Run:
        """`rows` requests are under way at a time; arrivals: seconds after the start, all at once if empty."""
        tally = Tally()
        # no prefix copies: every arm reads its prompts
        scheduler = Scheduler(self.runner.cache, self.config.step_tokens, 3600.0, prefix_cache=False)
        engine = Engine(scheduler, self.runner, self.grammars, 4096, Metrics(tally), print, StageClock(self.clock))
        clock = Stopwatch(self.clock)
        ears = [Ear(clock) for _ in cases]
        due = list(arrivals) or [0.0] * len(cases)
        waiting = [self._request(*pair, jump_forward) for pair in zip(ears, cases, strict=True)]
        clock.restart()
        added = 0
        while added < len(waiting) or scheduler.requests:
            if not scheduler.requests:
                clock.skip_to(due[added])
            while added < len(waiting) and len(scheduler.requests) < rows and due[added] <= clock():
                ears[added].added = clock()
                scheduler.add(waiting[added])
                added += 1
            engine.step_and_deliver()
        if self.loaded.device.type == "cuda":
            torch.cuda.synchronize()
        return _summary(clock(), tally, ears, due)

    def _request(self, ear: Ear, case: Case, jump: bool) -> Request:
        constrained = None if case.spec is None else self.grammars.matchers(case.spec.to_json(), 1)
        return Request(
            self.loaded.tokenizer.encode(case.prompt),
            SamplingParams(temperature=0.0),
            ear,
            max_tokens=case.max_tokens,
            stop_ids=frozenset(),
            pieces=self.loaded.tokenizer.pieces(),
            matchers=constrained.matchers if constrained else None,
            jump_forward=jump,
        )


def _summary(seconds: float, tally: Tally, ears: list[Ear], due: Sequence[float]) -> Run:
    sums: dict[str, Any] = dict(tally.sums)
    stages = {n.split("_")[1]: float(v) for n, v in sums.items() if n.endswith("_seconds_total")}
    stages["transport"] = sum(ear.encoding for ear in ears)
    stages["commit"] = stages.get("commit", 0.0) - stages["transport"]
    tokens = sum(ear.usage["completion_tokens"] for ear in ears)
    latencies = [ear.times[-1] - at for ear, at in zip(ears, due, strict=True)]
    return Run(seconds, tokens, int(sums["guided_steps_total"]), ears, stages, latencies)
