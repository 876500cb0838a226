"""The ASGI application: routes, and errors in one envelope."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import cache, partial

from fastapi import FastAPI, Request
from fastapi.middleware.cors import CORSMiddleware
from starlette.exceptions import HTTPException
from starlette.responses import Response

from guided_frontend import openapi, routes
from guided_frontend.auditor import Auditor
from guided_frontend.backend import Backend
from guided_frontend.compiling import ConstraintChecker
from guided_frontend.contexts import Contexts
from guided_frontend.edge import ApiKeys, Edge
from guided_frontend.errors import ApiError, EngineError, NotFound, of_status
from guided_frontend.health import Health
from guided_frontend.limits import Gate, RateLimit
from guided_frontend.metrics import Metrics
from guided_frontend.responses import ClientGone
from guided_frontend.served import ServedModel
from guided_frontend.service import Service
from guided_frontend.settings import Settings
from guided_frontend.tracing import Tracing
from guided_frontend.versions import fingerprint

_LOG = logging.getLogger("guided_frontend")


def create_app(
    settings: Settings, backend: Backend, models: tuple[ServedModel, ...], tracing: Tracing | None = None
) -> FastAPI:
    """The application over one backend. It owns its threads and closes them, backend and tracing when it shuts down.

    tracing: where spans go instead of to `settings.trace_endpoint`.
    Raises OSError or ValueError when the file of API keys cannot be read, ValueError when answers are to be checked or
    spans exported and what does it is not installed.
    """
    tracing = tracing or Tracing.to(settings.trace_endpoint)
    service = _service(settings, backend, models)
    metrics = Metrics(lambda: service.gate.num_queued, lambda: service.checker.stats)
    auditor = Auditor(settings.check_answers, metrics.checked)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.checker.warm_up()
        yield
        service.checker.close()
        auditor.close()
        service.threads.shutdown(wait=False, cancel_futures=True)
        await backend.close()
        if tracing is not None:
            tracing.close()

    app = FastAPI(title="Triton Guided", lifespan=lifespan)
    app.openapi = cache(partial(openapi.document, app.title, fingerprint()))  # type: ignore[method-assign]
    _handle_errors(app)
    routes.add_generation(app, service, settings, auditor)
    routes.add_inspection(app, service, settings)
    routes.add_operation(app, service, metrics)
    _add_middleware(app, settings, metrics, tracing)
    return app


def _service(settings: Settings, backend: Backend, models: tuple[ServedModel, ...]) -> Service:
    contexts = Contexts()
    health = Health(backend, contexts)
    for model in models:
        if model.context is None:
            # the probe that proves it ready also tells its context
            health.suspect(model.triton_name)
    return Service(
        backend=backend,
        models=models,
        checker=ConstraintChecker(settings.limits, settings.compile_workers, settings.compile_timeout),
        gate=Gate(settings.max_concurrent, settings.max_queued, settings.queue_timeout),
        health=health,
        threads=ThreadPoolExecutor(2, thread_name_prefix="render"),
        request_timeout=settings.request_timeout,
        contexts=contexts,
    )


def _add_middleware(app: FastAPI, settings: Settings, metrics: Metrics, tracing: Tracing | None) -> None:
    """The one added last is the outermost."""
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=list(settings.cors_origins), allow_methods=["*"], allow_headers=["*"]
        )
    app.add_middleware(
        Edge,
        keys=ApiKeys.read(settings.api_keys),
        rate=RateLimit(settings.rate_limit),
        metrics=metrics,
        log_completions=settings.log_completions,
        tracing=tracing,
    )


def _handle_errors(app: FastAPI) -> None:
    @app.exception_handler(ApiError)
    async def refused(request: Request, error: ApiError) -> Response:
        request.state.record.fail(error)
        return _answer(error, error.status, error.headers())

    @app.exception_handler(HTTPException)
    async def by_router(request: Request, error: HTTPException) -> Response:
        where = f"{request.method} {request.url.path}"
        told = NotFound(f"no such path: {where}") if error.status_code == 404 else of_status(error.status_code, where)
        return _answer(told, error.status_code, error.headers or {})

    @app.exception_handler(ClientGone)
    async def gone(request: Request, error: ClientGone) -> Response:
        request.state.record.is_gone = True
        return Response(status_code=499)

    @app.exception_handler(Exception)
    async def broken(request: Request, error: Exception) -> Response:
        request.state.record.error = EngineError("internal error")
        _LOG.error("request %s failed", request.state.record.origin.request_id, exc_info=error)
        return _answer(request.state.record.error, 500, {})


def _answer(error: ApiError, status: int, headers: Mapping[str, str]) -> Response:
    text = json.dumps(error.body(), ensure_ascii=False, separators=(",", ":"))
    return Response(text.encode("utf-8", "replace"), status, dict(headers), "application/json")
