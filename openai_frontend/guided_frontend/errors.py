"""The one error tree of the HTTP surface, and its body.

ApiError              any answer that is not a success
├── BadRequest        400  a field is wrong, unknown, or cannot be honoured
├── Unauthorized      401  no valid API key
├── NotFound          404  no such model or path
├── Timeout           408  the request's deadline passed
├── TooLarge          413  the body is over the limit
├── Busy              429  over the concurrency or rate limit; carries Retry-After
├── EngineError       500  the model failed
└── Unavailable       503  the model cannot be reached, is shutting down or stuck; carries Retry-After
"""

from __future__ import annotations

from typing import Any

from guided_engine.protocol import RequestError
from guided_grammar.errors import GrammarError

_MESSAGE, _PARAM = 900, 200


def _cut(text: str, most: int) -> str:
    """Names in a message can be the client's, and of any length."""
    return text if len(text) <= most else f"{text[:most]}..."


class ApiError(Exception):
    """Ends a request. `param`: the request field at fault. `label`: the outcome it counts as (see `observe`).

    `keyword`: the part of a refused constraint at fault.
    """

    status = 500
    kind = "server_error"
    retry_after: int | None = None

    def __init__(self, message: str, param: str | None = None, *, label: str = "") -> None:
        super().__init__(message)
        self.message, self.label, self.keyword = _cut(message, _MESSAGE), label, ""
        self.param = None if param is None else _cut(param, _PARAM)

    def body(self) -> dict[str, Any]:
        """`{"error": {message, type, param, code}}`; `param` is left out where no field is at fault."""
        fields: dict[str, Any] = {"message": self.message, "type": self.kind, "code": self.status}
        if self.param is not None:
            fields["param"] = self.param
        return {"error": fields}

    def headers(self) -> dict[str, str]:
        return {} if self.retry_after is None else {"retry-after": str(self.retry_after)}


class BadRequest(ApiError):
    status, kind = 400, "invalid_request_error"


class Unauthorized(ApiError):
    status, kind = 401, "authentication_error"


class NotFound(ApiError):
    status, kind = 404, "invalid_request_error"


class Timeout(ApiError):
    status, kind = 408, "timeout_error"


class TooLarge(ApiError):
    status, kind = 413, "invalid_request_error"


class Busy(ApiError):
    status, kind, retry_after = 429, "rate_limit_error", 1


class EngineError(ApiError):
    pass


class Unavailable(ApiError):
    status, retry_after = 503, 5


_BY_STATUS = {c.status: c for c in (BadRequest, Unauthorized, NotFound, Timeout, TooLarge, Busy, Unavailable)}
REFUSED = "refused"
STUCK = "stuck"
OVERLOAD = "queue full"
VIOLATION = "violation"
_QUEUED_TOO_LONG = 504


def of_status(status: int, message: str, param: str | None = None, *, label: str = "") -> ApiError:
    """The error class of an HTTP status; a status without a class becomes a 400 or a 500 by its hundred."""
    fallback = BadRequest if 400 <= status < 500 else EngineError
    return _BY_STATUS.get(status, fallback)(message, param, label=label)


def of_engine(error: RequestError) -> ApiError:
    """What the engine said, as an HTTP answer."""
    if error.status == _QUEUED_TOO_LONG:
        return Unavailable(error.message, label=OVERLOAD)
    told = of_status(error.status, error.message, error.param, label=REFUSED if error.detail else "")
    told.keyword = str(error.detail.get("keyword", ""))
    return told


def of_grammar(error: GrammarError, field: str) -> BadRequest:
    """A refused constraint; `field` is the request field that carried it."""
    named = error.message if field in error.message else f"{field}: {error.message}"
    told = BadRequest(named, field, label=REFUSED)
    told.keyword = error.keyword
    return told
