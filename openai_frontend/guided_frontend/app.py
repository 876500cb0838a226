"""The ASGI application: routes, and errors in one envelope."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from guided_frontend import body, chat
from guided_frontend.backend import Backend
from guided_frontend.chat import Service
from guided_frontend.compiling import ConstraintChecker
from guided_frontend.errors import ApiError, EngineError, NotFound, of_status
from guided_frontend.limits import Gate, read_body
from guided_frontend.responses import ClientGone, EventStream, until_gone
from guided_frontend.schemas import ChatRequest
from guided_frontend.served import ServedModel
from guided_frontend.settings import Settings


def create_app(settings: Settings, backend: Backend, models: tuple[ServedModel, ...]) -> FastAPI:
    """The application over one backend. It owns its threads and closes them, and the backend, when it shuts down."""
    service = Service(
        backend=backend,
        models=models,
        checker=ConstraintChecker(settings.limits, settings.compile_workers, settings.compile_timeout),
        gate=Gate(settings.max_concurrent, settings.max_queued, settings.queue_timeout),
        threads=ThreadPoolExecutor(2, thread_name_prefix="render"),
        request_timeout=settings.request_timeout,
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        service.checker.close()
        service.threads.shutdown(wait=False, cancel_futures=True)
        await backend.close()

    app = FastAPI(title="Triton Guided", lifespan=lifespan)
    _handle_errors(app)
    _add_chat(app, service, settings)
    _add_models(app, service)
    return app


def _add_chat(app: FastAPI, service: Service, settings: Settings) -> None:
    @app.post("/v1/chat/completions", openapi_extra=_body_schema(ChatRequest))
    async def chat_completions(request: Request) -> Response:
        raw = await read_body(request, settings.max_body_bytes)
        wanted = body.read(ChatRequest, raw, ignore_unknown=settings.unknown_fields == "ignore")
        job = await chat.accept(service, wanted)
        if not wanted.stream:
            return _json(await until_gone(request.receive, job.whole()))
        parts = job.stream()
        return EventStream(await until_gone(request.receive, parts.__anext__()), parts, {})


def _add_models(app: FastAPI, service: Service) -> None:
    started = int(time.time())

    @app.get("/v1/models")
    async def list_models() -> Response:
        names = [name for model in service.models for name in model.names]
        data = [{"id": n, "object": "model", "created": started, "owned_by": "triton-guided"} for n in names]
        return _json({"object": "list", "data": data})

    @app.get("/health")
    async def health() -> Response:
        return _json({"status": "ok"})

    @app.get("/health/ready")
    async def ready() -> Response:
        found = await asyncio.gather(*(service.backend.ready(m.triton_name) for m in service.models))
        return _json({"status": "ready" if all(found) else "not ready"}, 200 if all(found) else 503)


def _handle_errors(app: FastAPI) -> None:
    @app.exception_handler(ApiError)
    async def refused(request: Request, error: ApiError) -> Response:
        return _json(error.body(), error.status, error.headers())

    @app.exception_handler(HTTPException)
    async def by_router(request: Request, error: HTTPException) -> Response:
        where = f"{request.method} {request.url.path}"
        told = NotFound(f"no such path: {where}") if error.status_code == 404 else of_status(error.status_code, where)
        return _json(told.body(), error.status_code, dict(error.headers or {}))

    @app.exception_handler(ClientGone)
    async def gone(request: Request, error: ClientGone) -> Response:
        return Response(status_code=499)

    @app.exception_handler(Exception)
    async def broken(request: Request, error: Exception) -> Response:
        return _json(EngineError("internal error").body(), 500)


def _json(content: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None) -> Response:
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return Response(text.encode(), status, headers, "application/json")


def _body_schema(kind: type[Any]) -> dict[str, Any]:
    schema = kind.model_json_schema(ref_template=f"#/components/schemas/{kind.__name__}/$defs/{{model}}")
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}
