"""Tensors to a request: decoding, limits, tokenization and the grammar, off the engine's thread."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from guided_grammar.errors import GrammarError
from numpy.typing import NDArray

from guided_engine.engine import Engine
from guided_engine.grammars import Constrained, Grammars
from guided_engine.metrics import Metrics
from guided_engine.protocol import Event, GenerateRequest, RequestError
from guided_engine.request import Request, Sink, Timings
from guided_engine.tokenizer import Tokenizer

_WORKERS = 2


class Intake:
    """Checks a request against what the engine can serve and submits it; every refusal closes its sink.

    max_len: tokens that prompt and answer may have together.
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
        jump_forward: bool,
    ) -> None:
        self._engine, self._tokenizer, self._grammars, self._metrics = engine, tokenizer, grammars, metrics
        self._max_len, self._max_choices = max_len, max_choices
        self._stop_ids, self._jump_forward = stop_ids, jump_forward
        self._pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="guided-intake")

    def accept(self, tensors: Mapping[str, NDArray[Any]], sink: Sink) -> None:
        """Returns at once; the sink hears the rest."""
        timings = Timings()
        self._pool.submit(self._admit, tensors, sink, timings)

    def stop(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _admit(self, tensors: Mapping[str, NDArray[Any]], sink: Sink, timings: Timings) -> None:
        try:
            asked = GenerateRequest.decode(tensors)
            request = self._request(asked, sink, timings)
            if not asked.exclude_input:
                sink.send(Event(0, text=asked.text if asked.text is not None else self._text(request.prompt)))
            self._engine.submit(request)
            self._metrics.accepted(request.choices[0].matcher is not None)
        except RequestError as error:
            sink.close(error)
        except Exception as error:
            sink.close(RequestError(f"{type(error).__name__}: {error}", 500))

    def _request(self, asked: GenerateRequest, sink: Sink, timings: Timings) -> Request:
        prompt = list(asked.input_ids) if asked.input_ids is not None else self._tokenizer.encode(asked.text or "")
        max_tokens = self._max_tokens(prompt, asked.sampling.max_tokens)
        self._check(prompt, asked)
        constrained = self._constrained(asked.constraint, asked.sampling.n, timings) if asked.constraint else None
        return Request(
            prompt,
            asked.sampling,
            sink,
            max_tokens=max_tokens,
            stop_ids=self._stop_ids,
            pieces=self._tokenizer.pieces(constrained.markers if constrained else frozenset()),
            drops_space=self._tokenizer.drops_space,
            matchers=constrained.matchers if constrained else None,
            jump_forward=self._jump_forward,
            timings=timings,
        )

    def _constrained(self, constraint: str, count: int, timings: Timings) -> Constrained | None:
        started = time.monotonic()
        try:
            constrained = self._grammars.matchers(constraint, count)
        except GrammarError as error:
            self._metrics.refused()
            raise RequestError(error.message, 400, "constraint", error.to_dict()) from None
        timings.compile = time.monotonic() - started
        if constrained is not None:
            self._metrics.compiled(timings.compile, self._grammars.stats)
        return constrained

    def _max_tokens(self, prompt: list[int], asked: int | None) -> int:
        if not prompt:
            raise RequestError("the prompt is empty", param="text_input")
        room = self._max_len - len(prompt)
        if room < (asked or 1):
            wanted = f"{len(prompt)} + {asked or 1} tokens of prompt and answer"
            raise RequestError(f"context limit is {self._max_len}, got {wanted}", param="max_tokens")
        return asked or room

    def _check(self, prompt: list[int], asked: GenerateRequest) -> None:
        size, sampling = self._tokenizer.vocabulary.vocab_size, asked.sampling
        for name, ids in (
            ("input_ids", prompt),
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
