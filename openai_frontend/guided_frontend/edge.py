"""The outermost layer: ids, API keys, rates, and the record that is logged and counted when an answer has ended."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import time
import uuid
from pathlib import Path

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from guided_frontend.backend import Origin
from guided_frontend.errors import ApiError, Unauthorized
from guided_frontend.limits import RateLimit
from guided_frontend.metrics import Metrics
from guided_frontend.observe import Record
from guided_frontend.tracing import Tracing

_ID = re.compile(r"[\x21-\x7e]{1,128}")
_TRACE_PARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_TRACE_STATE = re.compile(r"[\x20-\x7e]{1,512}")
_OPEN = ("/health", "/metrics", "/version", "/docs", "/openapi.json")
_MEASURED = {"/v1/chat/completions": "chat", "/v1/completions": "completions"}


class ApiKeys:
    """SHA-256 digests of the keys that are let in; none means everybody is."""

    def __init__(self, digests: tuple[bytes, ...]) -> None:
        self._digests = digests

    @staticmethod
    def read(path: str) -> ApiKeys:
        """One hexadecimal digest per line; "" is no file. Raises OSError, ValueError."""
        lines = Path(path).read_text(encoding="ascii").split() if path else []
        digests = tuple(bytes.fromhex(line) for line in lines)
        if any(len(digest) != 32 for digest in digests) or (path and not digests):
            raise ValueError(f"{path} must hold SHA-256 digests in hexadecimal, one per line")
        return ApiKeys(digests)

    def check(self, authorization: str) -> str:
        """The digest of the client's key, "" where none is asked for. Raises Unauthorized.

        All digests are compared, each in constant time.
        """
        if not self._digests:
            return ""
        scheme, _, key = authorization.partition(" ")
        digest = hashlib.sha256(key.strip().encode()).digest()
        matches = [hmac.compare_digest(digest, known) for known in self._digests]
        if scheme.lower() != "bearer" or not any(matches):
            raise Unauthorized("a valid API key is needed: Authorization: Bearer <key>")
        return digest.hex()


class Edge:
    """ASGI middleware. The record is found at `request.state.record`."""

    def __init__(
        self, app: ASGIApp, keys: ApiKeys, rate: RateLimit, metrics: Metrics, log_completions: bool,
        tracing: Tracing | None,
    ) -> None:  # fmt: skip
        self._app, self._keys, self._rate, self._metrics, self._tracing = app, keys, rate, metrics, tracing
        self._log_completions = log_completions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        request_id = given if _ID.fullmatch(given) else f"req_{uuid.uuid4().hex}"
        record = Record(Origin(request_id, _trace(headers)), _MEASURED.get(scope["path"], ""), self._log_completions)
        scope.setdefault("state", {})["record"] = record

        async def tagged(message: Message) -> None:
            if message["type"] == "http.response.start":
                record.status = message["status"]
                MutableHeaders(scope=message)["x-request-id"] = request_id
            await send(message)

        try:
            if scope["method"] != "OPTIONS" and not scope["path"].startswith(_OPEN):
                key = self._keys.check(headers.get("authorization", ""))
                record.client = key or (scope.get("client") or ("",))[0]
                self._rate.take(record.client, time.monotonic())
        except ApiError as error:
            await _refuse(tagged, error)
            return
        await self._measured(record, scope, receive, tagged)

    async def _measured(self, record: Record, scope: Scope, receive: Receive, send: Send) -> None:
        if not record.endpoint:
            await self._app(scope, receive, send)
            return
        self._metrics.started()
        span = None
        if self._tracing is not None:
            span, carried = self._tracing.begin(record.endpoint, record.origin.trace)
            record.origin = Origin(record.origin.request_id, carried)
        try:
            await self._app(scope, receive, send)
        finally:
            record.end = time.perf_counter()
            self._metrics.finished(record)
            if self._tracing is not None and span is not None:
                self._tracing.end(span, record)
            record.log()


def _trace(headers: Headers) -> dict[str, str]:
    """No other header of a client's may reach the server: some of them change how it answers."""
    parent, state = headers.get("traceparent", ""), headers.get("tracestate", "")
    if not _TRACE_PARENT.fullmatch(parent):
        return {}
    return {"traceparent": parent, **({"tracestate": state} if _TRACE_STATE.fullmatch(state) else {})}


async def _refuse(send: Send, error: ApiError) -> None:
    body = json.dumps(error.body()).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(name.encode(), value.encode()) for name, value in error.headers().items()]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
