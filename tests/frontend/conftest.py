from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import httpx
import pytest
from guided_frontend.served import ServedModel
from guided_frontend.settings import Settings
from guided_testing.scripted_backend import Answer, ScriptedBackend, load_model, serving
from openai import OpenAI


@dataclass
class Frontend:
    """The application on a real port, over a scripted backend."""

    url: str
    backend: ScriptedBackend

    def answers(self, *answers: Answer) -> None:
        self.backend.answers = list(answers)
        self.backend.requests.clear()

    def post(self, body: Any, path: str = "/v1/chat/completions") -> httpx.Response:
        return self.http.post(path, json=body)

    def ask(self, **fields: Any) -> httpx.Response:
        return self.post({"messages": [{"role": "user", "content": "Hi"}], **fields})

    def close(self) -> None:
        self.http.close()
        self.client.close()

    @cached_property
    def http(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=20, verify=False)

    @cached_property
    def client(self) -> OpenAI:
        return OpenAI(base_url=f"{self.url}/v1", api_key="flm", max_retries=0, timeout=20)


@contextmanager
def served_by(settings: Settings, backend: ScriptedBackend, *models: ServedModel) -> Iterator[Frontend]:
    with serving(settings, backend, *models) as url, closing(Frontend(url, backend)) as frontend:
        yield frontend


@pytest.fixture(scope="session")
def settings() -> Settings:
    return Settings(
        served_model_names=("smollm2", "default"), max_body_bytes=100_000, compile_timeout=5.0, max_model_len=4096
    )


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory, settings: Settings) -> ServedModel:
    return load_model(tmp_path_factory.mktemp("model"), settings)


@pytest.fixture(scope="session")
def shared(settings: Settings, model: ServedModel) -> Iterator[Frontend]:
    backend = ScriptedBackend()
    with served_by(settings, backend, model) as frontend:
        yield frontend


@pytest.fixture
def frontend(shared: Frontend) -> Frontend:
    shared.backend.is_up = True
    shared.backend.cancelled = 0
    shared.answers(Answer())
    return shared
