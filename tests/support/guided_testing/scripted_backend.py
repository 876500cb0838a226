"""A backend that answers from a script, a model folder to serve it with, and the application on a real port."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from guided_engine.protocol import Event, GenerateRequest, TokenLogprob
from guided_frontend import served
from guided_frontend.app import create_app
from guided_frontend.backend import Origin
from guided_frontend.errors import ApiError, Unavailable
from guided_frontend.served import ServedModel
from guided_frontend.settings import Settings
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

SPECIALS = ("<|im_start|>", "<|im_end|>", "<|endoftext|>")
MARKERS = ("<tool_call>", "</tool_call>", "<think>", "</think>")


@dataclass(frozen=True)
class Answer:
    """pieces: one event each, for every choice. context: the engine's, told with the last event. error: raised after `error_after` pieces. pause: seconds between."""

    pieces: tuple[str, ...] = ("Hello", " there", "!")
    finish_reason: str = "stop"
    stop_reason: str | None = None
    context: int | None = None
    error: ApiError | None = None
    error_after: int = 0
    pause: float = 0.0


@dataclass
class ScriptedBackend:
    """Answers in order; the last answer repeats. `asked` names the models; `cancelled` counts generations closed before their end."""

    answers: list[Answer] = field(default_factory=lambda: [Answer()])
    is_up: bool = True
    requests: list[GenerateRequest] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    origins: list[Origin] = field(default_factory=list)
    cancelled: int = 0
    running: int = 0

    async def generate(self, model: str, request: GenerateRequest, origin: Origin) -> AsyncGenerator[list[Event], None]:
        self.requests.append(request)
        self.asked.append(model)
        self.origins.append(origin)
        if not self.is_up:
            raise Unavailable("the model server did not answer: it is down", label="transport")
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        ended = False
        self.running += 1
        try:
            for place, piece in enumerate(answer.pieces):
                if answer.error is not None and place == answer.error_after:
                    ended = True
                    raise answer.error
                await asyncio.sleep(answer.pause)
                yield [_event(choice, piece, request) for choice in range(request.sampling.n)]
            ended = True
            yield [_last(choice, answer, request) for choice in range(request.sampling.n)]
        finally:
            self.running -= 1
            self.cancelled += not ended

    async def parameters(self, model: str) -> Mapping[str, str]:
        return {}

    async def versions(self) -> Mapping[str, str]:
        return {"triton": "2.51.0"} if self.is_up else {}

    async def ready(self, model: str) -> bool:
        return self.is_up

    async def close(self) -> None:
        self.is_up = False


def _event(choice: int, piece: str, request: GenerateRequest) -> Event:
    raw = tuple(piece.encode())
    wanted = request.sampling.logprobs
    top = tuple(TokenLogprob(token, -1.0 - token, raw) for token in range(wanted or 0))
    logprobs = None if wanted is None else (TokenLogprob(7, -0.5, raw, top),)
    return Event(choice, (7,), piece, logprobs)


def _last(choice: int, answer: Answer, request: GenerateRequest) -> Event:
    usage = {"prompt_tokens": len(request.input_ids or ()), "completion_tokens": len(answer.pieces)}
    timings = {"queue": 0.001, "compile": 0.0, "first_token": 0.01, "total": 0.02}
    return Event(
        choice,
        finish_reason=answer.finish_reason,
        stop_reason=answer.stop_reason,
        usage=usage,
        timings=timings,
        context=answer.context,
    )


def write_model(folder: Path, template: str | None = None, control: Sequence[str] = ()) -> Path:
    """A tokenizer folder: one token per byte, ChatML markers and `control` special, call and reasoning markers added
    tokens."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={char: place for place, char in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in (*SPECIALS, *control)])
    tokenizer.add_tokens([AddedToken(text, special=False, normalized=False) for text in MARKERS])
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"eos_token": "<|im_end|>", "bos_token": None}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    (folder / "config.json").write_text(json.dumps({"max_position_embeddings": 4096}))
    (folder / "chat_template.jinja").write_text(template or "{{ '<|im_start|>' ~ messages[0].content }}")
    return folder


def load_model(
    folder: Path, settings: Settings, template: str | None = None, control: Sequence[str] = ()
) -> ServedModel:
    """The model of `write_model`, as the frontend loads it."""
    return served.load(settings, {"model": str(write_model(folder, template, control))})


@contextmanager
def serving(settings: Settings, backend: ScriptedBackend, *models: ServedModel) -> Iterator[str]:
    """The application on a free port of its own; gives the base address."""
    with running(create_app(settings, backend, models)) as url:
        yield url


@contextmanager
def running(app: FastAPI) -> Iterator[str]:
    """Any application, in the same way."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", ws="none"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server did not start"
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(10)
