"""A model that follows a script, a client that listens, and numbers that nobody exports."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
from guided_engine.batch import Batch
from guided_engine.engine import Engine
from guided_engine.grammars import GrammarMatcher, Grammars
from guided_engine.kv_cache import CacheShape, KVCache
from guided_engine.metrics import Metrics
from guided_engine.protocol import Event, RequestError, SamplingParams
from guided_engine.request import Request
from guided_engine.scheduler import Scheduler
from guided_engine.tokenizer import Tokenizer
from guided_grammar.batch import StepMasks, fill
from guided_grammar.compiler import Compiled, compile_spec
from guided_grammar.pool import PoolStats
from guided_grammar.spec import GrammarSpec

from guided_testing.byte_tokenizer import EOS, byte_engine, byte_vocabulary, compile_bytes

VOCABULARY = byte_vocabulary()


class ScriptedModel:
    """Logits that favour, after any prompt, the bytes of `answer` one by one and then the stop.

    A cache slot that a row relies on but never filled is found: position p of slot i must hold the row's token p.
    """

    def __init__(self, cache: KVCache, answer: Callable[[str], str]) -> None:
        self.cache, self._answer, self.batches = cache, answer, list[Batch]()

    def forward(self, batch: Batch) -> torch.Tensor:
        self.batches.append(batch)
        for slot, (choice, past, chunk) in enumerate(zip(batch.rows, batch.past, batch.chunks, strict=True)):
            held = self.cache.tensor[0, 0, slot, :, 0, 0]
            assert held[:past].tolist() == choice.tokens[:past]
            held[past : past + len(chunk)] = torch.tensor(chunk, dtype=held.dtype)
        logits = torch.zeros(len(batch.sampling), VOCABULARY.vocab_size)
        for row, choice in enumerate(batch.drawing):
            prompt = choice.request.prompt
            script = [*self._answer(bytes(prompt).decode()).encode(), EOS]
            logits[row, script[min(choice.num_generated, len(script) - 1)]] = 9.0
        return logits

    def logits(self, state: torch.Tensor, masks: StepMasks | None, choices: Sequence[Any]) -> torch.Tensor:
        return state


class Listener:
    """A `Sink` that keeps what it hears and counts terminal events."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.error: RequestError | None = None
        self.num_closed = 0
        self.cancelled = False
        self.done = threading.Event()

    def send(self, event: Event) -> None:
        self.events.append(event)

    def close(self, error: RequestError | None = None) -> None:
        self.error, self.num_closed = error, self.num_closed + 1
        self.done.set()

    def text(self, index: int = 0) -> str:
        return "".join(e.text for e in self.events if e.index == index)

    def last(self, index: int = 0) -> Event:
        return [e for e in self.events if e.index == index][-1]


class Numbers:
    """A metrics backend in memory: last value of gauges, sums of counters, observations."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {}
        self.observed: dict[str, list[float]] = {}

    def set(self, name: str, value: float) -> None:
        self.values[name] = value

    def add(self, name: str, value: float) -> None:
        self.values[name] = self.values.get(name, 0) + value

    def observe(self, name: str, value: float) -> None:
        self.observed.setdefault(name, []).append(value)


class ByteTokenizer(Tokenizer):
    """Ids are bytes."""

    def __init__(self) -> None:
        self.vocabulary, self.drops_space = VOCABULARY, False

    def pieces(self, markers: frozenset[str] = frozenset()) -> tuple[bytes, ...]:
        return VOCABULARY.tokens

    def encode(self, text: str) -> list[int]:
        return list(text.encode())


class ByteMasks:
    """The engine's mask source over the byte vocabulary."""

    def fill(self, choices: Sequence[Any]) -> StepMasks | None:
        matchers = [c.matcher for c in choices]
        if not any(matchers):
            return None
        return fill([m and m.session for m in matchers], VOCABULARY.vocab_size)


class Bench:
    """A whole engine over bytes, stepped by hand."""

    def __init__(
        self,
        answer: Callable[[str], str],
        *,
        rows: int = 4,
        max_len: int = 64,
        tokens: int = 0,
        step_tokens: int = 256,
        queue_size: int = 64,
        queue_seconds: float = 60.0,
        prefix_cache: bool = True,
    ) -> None:
        shape = CacheShape(1, 1, 1, rows, max_len, tokens or rows * max_len)
        self.cache = KVCache(shape, torch.float32, torch.device("cpu"))
        self.model = ScriptedModel(self.cache, answer)
        self.scheduler = Scheduler(self.cache, step_tokens, queue_seconds, prefix_cache)
        self.numbers, self.reports = Numbers(), list[str]()
        self.engine = Engine(
            self.scheduler, self.model, ByteMasks(), queue_size, Metrics(self.numbers), self.reports.append
        )

    def request(
        self, prompt: str, grammar: str = "", *, jump_forward: bool = True, **sampling: Any
    ) -> tuple[Request, Listener]:
        """A greedy request; grammar: EBNF text."""
        params = SamplingParams(**{"temperature": 0.0, **sampling})
        listener, matchers = Listener(), None
        if grammar:
            compiled = compile_bytes(grammar)
            matchers = [GrammarMatcher(byte_engine().session(compiled), VOCABULARY) for _ in range(params.n)]
        request = Request(
            list(prompt.encode()),
            params,
            listener,
            max_tokens=params.max_tokens or self.cache.shape.max_len - len(prompt.encode()),
            stop_ids=frozenset({EOS}),
            pieces=VOCABULARY.tokens,
            matchers=matchers,
            jump_forward=jump_forward,
        )
        return request, listener

    def add(self, prompt: str, grammar: str = "", **kwargs: Any) -> Listener:
        request, listener = self.request(prompt, grammar, **kwargs)
        self.scheduler.add(request)
        return listener

    def drain(self, limit: int = 500) -> int:
        """Step until nothing is left; returns the number of steps."""
        for steps in range(limit):
            if not self.scheduler.requests:
                return steps
            self.engine.step_and_deliver()
        raise AssertionError(f"still busy after {limit} steps")


class InProcess:
    """Compiles specs here, without worker processes."""

    stats = PoolStats()

    def __init__(self) -> None:
        self.clients: list[str] = []

    def compile(self, spec: GrammarSpec, client: str = "") -> Compiled:
        self.clients.append(client)
        return compile_spec(spec)


def byte_grammars(mask_seconds: float = 0.0, specs: InProcess | None = None) -> Grammars:
    return Grammars(VOCABULARY, specs or InProcess(), 1 << 20, mask_seconds=mask_seconds)
