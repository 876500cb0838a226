"""A whole engine inside the frontend's process, around a model that writes a script."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from guided_engine.batch import Batch
from guided_engine.engine import Engine
from guided_engine.grammars import Grammars
from guided_engine.intake import Intake
from guided_engine.kv_cache import CacheShape, KVCache
from guided_engine.metrics import Metrics
from guided_engine.protocol import Event, GenerateRequest, RequestError
from guided_engine.scheduler import Scheduler
from guided_engine.tokenizer import Tokenizer
from guided_frontend.backend import Origin
from guided_grammar.batch import StepMasks
from transformers import PreTrainedTokenizerFast

from guided_testing.engine_fakes import InProcess, Numbers
from guided_testing.scripted_backend import ScriptedBackend

_MAX_LEN = 4096


class _Writer:
    """Logits that favour the tokens of `answer(prompt)` one by one and then the stop."""

    def __init__(self, tokenizer: Any, size: int, answer: Callable[[str], str]) -> None:
        self._tokenizer, self._size, self._answer = tokenizer, size, answer

    def forward(self, batch: Batch) -> torch.Tensor:
        logits = torch.zeros(len(batch.sampling), self._size)
        for row, choice in enumerate(batch.drawing):
            script = self._tokenizer.encode(self._answer(self._tokenizer.decode(choice.request.prompt)))
            script.append(self._tokenizer.eos_token_id)
            logits[row, script[min(choice.num_generated, len(script) - 1)]] = 99.0
        return logits

    def logits(self, state: torch.Tensor, masks: StepMasks | None, choices: Sequence[Any]) -> torch.Tensor:
        return state


@dataclass
class _Sink:
    loop: asyncio.AbstractEventLoop
    arrived: asyncio.Queue[Event | RequestError | None] = field(default_factory=asyncio.Queue)
    cancelled: bool = False

    def send(self, event: Event) -> None:
        self.loop.call_soon_threadsafe(self.arrived.put_nowait, event)

    def close(self, error: RequestError | None = None) -> None:
        self.loop.call_soon_threadsafe(self.arrived.put_nowait, error)


class EngineBackend(ScriptedBackend):
    """The frontend's backend. `requests`: what the engine was asked."""

    def __init__(self, intake: Intake) -> None:
        super().__init__()
        self._intake = intake

    async def generate(self, model: str, request: GenerateRequest, origin: Origin) -> AsyncGenerator[list[Event], None]:
        self.requests.append(request)
        sink = _Sink(asyncio.get_running_loop())
        self._intake.accept(request.encode(), sink)
        while isinstance(item := await sink.arrived.get(), Event):
            yield [item]
        if item is not None:
            raise item


@contextmanager
def engine_backend(folder: Path, answer: Callable[[str], str]) -> Iterator[EngineBackend]:
    """answer: the text that the model writes after a prompt; markup in it becomes tokens.

    folder: holds tokenizer.json and tokenizer_config.json (`scripted_backend.write_model`).
    """
    fast: Any = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), eos_token="<|im_end|>")
    stops = frozenset({int(fast.eos_token_id)})
    tokenizer, metrics = Tokenizer(fast, len(fast)), Metrics(Numbers())
    grammars = Grammars(tokenizer.vocabulary, InProcess(), 1 << 20)
    cache = KVCache(CacheShape(1, 1, 1, 4, _MAX_LEN, 4 * _MAX_LEN), torch.float32, torch.device("cpu"))
    scheduler, model = Scheduler(cache, _MAX_LEN, 60.0, False), _Writer(fast, len(fast), answer)
    engine = Engine(scheduler, model, grammars, 64, metrics, print)
    intake = Intake(
        engine, tokenizer, grammars, metrics, max_len=_MAX_LEN, max_choices=4, stop_ids=stops, max_pending=8,
        jump_forward=True,
    )  # fmt: skip
    engine.start()
    try:
        yield EngineBackend(intake)
    finally:
        intake.stop()
        engine.stop(5)
