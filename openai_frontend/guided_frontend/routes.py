"""The endpoints."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from fastapi import FastAPI, Request
from starlette.responses import Response

from guided_frontend import chat, inspection, served, text
from guided_frontend.auditor import Auditor
from guided_frontend.body import read
from guided_frontend.chat import Chat
from guided_frontend.limits import read_body
from guided_frontend.metrics import Metrics
from guided_frontend.observe import Record
from guided_frontend.received import check_schemas
from guided_frontend.responses import EventStream, until_gone
from guided_frontend.schemas import (
    ChatRequest,
    CheckRequest,
    CompletionRequest,
    DetokenizeRequest,
    Fields,
    Generation,
    TokenizeRequest,
)
from guided_frontend.served import ServedModel
from guided_frontend.service import Service
from guided_frontend.settings import Settings
from guided_frontend.text import Text
from guided_frontend.versions import packages

Wanted = TypeVar("Wanted", bound=Generation)
Asked = TypeVar("Asked", bound=Fields)


def add_generation(app: FastAPI, service: Service, settings: Settings, auditor: Auditor) -> None:
    """`/v1/chat/completions` and `/v1/completions`."""

    def serve(
        path: str, kind: type[Wanted], accept: Callable[[Service, Wanted, Record], Awaitable[Chat | Text]]
    ) -> None:
        @app.post(path, name=path)
        async def endpoint(request: Request) -> Response:
            raw = await read_body(request, settings.max_body_bytes)
            wanted = read(kind, raw, ignore_unknown=settings.unknown_fields == "ignore")
            check_schemas(raw, settings.limits.schema_bytes)
            record = request.state.record
            job = await accept(service, wanted, record)
            if not wanted.stream:
                return _json(await until_gone(request.receive, auditor.whole(record, wanted, job.whole())))
            parts = auditor.stream(record, wanted, job.stream())
            first = await until_gone(request.receive, parts.__anext__())
            return EventStream(first, parts, record)

    serve("/v1/chat/completions", ChatRequest, chat.accept)
    serve("/v1/completions", CompletionRequest, text.accept)


def add_inspection(app: FastAPI, service: Service, settings: Settings) -> None:
    """Endpoints that answer without the engine."""

    def serve(path: str, kind: type[Asked], answer: Callable[[Service, Asked], Awaitable[dict[str, Any]]]) -> None:
        @app.post(path, name=path)
        async def endpoint(request: Request) -> Response:
            raw = await read_body(request, settings.max_body_bytes)
            return _json(await answer(service, read(kind, raw)))

    serve("/tokenize", TokenizeRequest, inspection.tokenize)
    serve("/detokenize", DetokenizeRequest, inspection.detokenize)
    serve("/v1/constraints/check", CheckRequest, inspection.check)
    started = int(time.time())

    @app.get("/v1/models")
    async def list_models() -> Response:
        cards = [_card(service, model, name, started) for model in service.models for name in model.names]
        return _json({"object": "list", "data": cards})

    @app.get("/v1/models/{name:path}")
    async def one_model(name: str) -> Response:
        return _json(_card(service, served.find(service.models, name), name, started))


def add_operation(app: FastAPI, service: Service, metrics: Metrics) -> None:
    """What an operator asks for."""

    @app.get("/health")
    async def health() -> Response:
        return _json({"status": "ok"})

    @app.get("/health/ready")
    async def ready() -> Response:
        found = await asyncio.gather(*(service.health.ready(model.triton_name) for model in service.models))
        return _json({"status": "ready" if all(found) else "not ready"}, 200 if all(found) else 503)

    @app.get("/version")
    async def versions() -> Response:
        return _json({"server": dict(await service.backend.versions()), "packages": packages()})

    @app.get("/metrics")
    async def scrape() -> Response:
        return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _card(service: Service, model: ServedModel, name: str, started: int) -> dict[str, Any]:
    return {
        "id": name, "object": "model", "created": started, "owned_by": "triton-guided", "root": model.names[0],
        "max_model_len": service.contexts.of(model), "tool_format": model.format.name, "shows_tools": model.shows_tools,
        "reasons": model.thinks,
    }  # fmt: skip


def _json(content: dict[str, Any], status: int = 200) -> Response:
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return Response(text.encode("utf-8", "replace"), status, media_type="application/json")
