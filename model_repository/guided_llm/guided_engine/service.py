"""The whole engine, put together from its settings."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
from guided_grammar.pool import CompilePool
from guided_grammar.proof import Prover
from numpy.typing import NDArray

from guided_engine.config import EngineConfig
from guided_engine.engine import Engine
from guided_engine.grammars import Grammars
from guided_engine.intake import Intake
from guided_engine.kv_cache import CacheShape
from guided_engine.loading import Loaded, load, plan_cache
from guided_engine.metrics import Backend, Metrics
from guided_engine.responder import Outbox, Reply
from guided_engine.runner import Runner
from guided_engine.sampling import prepare
from guided_engine.scheduler import Scheduler
from guided_engine.self_test import prove

_OUTBOXES = 2


class Service:
    """Model, grammar engine, loop and senders; serving when the constructor returns.

    facts: lines for the log. Raises what `load`, `plan_cache` and `Runner` raise, and SelfTestError.
    """

    def __init__(self, config: EngineConfig, backend: Backend, report: Callable[[str], None]) -> None:
        if config.num_threads:
            torch.set_num_threads(config.num_threads)
        loaded = load(config)
        shape = plan_cache(config, loaded)
        runner = Runner(loaded.model, shape, loaded.dtype, config.batch_invariant)
        started = time.monotonic()
        vocabulary = loaded.tokenizer.vocabulary
        self._specs = CompilePool(config.limits, config.grammar_workers)
        # one that is lost reads the vocabulary again, which takes seconds: another must be there for everybody else
        self._proofs = Prover(vocabulary, config.limits, max(2, config.grammar_workers))
        self._grammars = Grammars(
            vocabulary, self._specs, config.grammar_cache_bytes, config.limits, self._proofs, config.mask_seconds
        )
        # starts the workers and reads the vocabulary now instead of inside the first request, too
        prove(self._grammars, loaded.tokenizer)
        proven = time.monotonic()
        prepare(runner.vocab_size, loaded.dtype, runner.cache.device)
        self.facts = _facts(config, loaded, shape, proven - started, time.monotonic() - proven)
        metrics = Metrics(backend, lambda: self._grammars.stats)
        scheduler = Scheduler(runner.cache, config.step_tokens, config.queue_seconds, config.prefix_cache)
        self._engine = Engine(scheduler, runner, self._grammars, config.queue_size, metrics, report)
        self._intake = _intake(self._engine, loaded, self._grammars, metrics, config, shape)
        self._outboxes = [Outbox(report) for _ in range(_OUTBOXES)]
        self._num_accepted = 0
        self._engine.start()

    @property
    def is_healthy(self) -> bool:
        return self._engine.is_healthy

    def accept(self, tensors: Mapping[str, NDArray[Any]], reply: Reply) -> None:
        """Serve one request; returns at once, and `reply` gets exactly one final response."""
        stream = tensors.get("stream")
        outbox = self._outboxes[self._num_accepted % _OUTBOXES]
        self._num_accepted += 1
        self._intake.accept(tensors, outbox.open(reply, stream is not None and bool(stream.reshape(-1)[0])))

    def stop(self, timeout: float) -> None:
        """End every request and every thread."""
        self._specs.close()
        self._proofs.close()
        self._intake.stop()
        self._grammars.close()
        self._engine.stop(timeout)
        for outbox in self._outboxes:
            outbox.stop(timeout)


def _intake(
    engine: Engine, loaded: Loaded, grammars: Grammars, metrics: Metrics, config: EngineConfig, shape: CacheShape
) -> Intake:
    return Intake(
        engine,
        loaded.tokenizer,
        grammars,
        metrics,
        max_len=min(shape.max_len, shape.tokens),
        max_choices=shape.rows,
        stop_ids=loaded.stop_ids,
        max_pending=config.queue_size,
        jump_forward=config.jump_forward,
    )


def _facts(
    config: EngineConfig, loaded: Loaded, shape: CacheShape, grammar_seconds: float, sampler_seconds: float
) -> tuple[str, ...]:
    return (
        f"model {loaded.path} on {loaded.device}, weights {config.dtype} as {loaded.dtype},"
        f" {torch.get_num_threads()} threads",
        f"{shape.rows} rows of {shape.max_len} tokens, cache for {shape.tokens} tokens",
        f"Grammar engine ready in {grammar_seconds * 1000:.0f} ms",
        f"Sampler ready in {sampler_seconds * 1000:.0f} ms",
    )
