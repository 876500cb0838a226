"""What an operator must see of every request: one record, one log line, one normalized outcome."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from guided_engine.protocol import CONSTRAINT, INPUT_IDS, Event
from guided_grammar.spec import FREE, Kind

from guided_frontend.backend import Origin
from guided_frontend.constraint import Constraint
from guided_frontend.errors import OVERLOAD, REFUSED, VIOLATION, ApiError
from guided_frontend.versions import grammar_backend

_LOG = logging.getLogger("guided_frontend.requests")
_DOCUMENTS = (Kind.JSON_OBJECT, Kind.JSON_SCHEMA)


class Outcome(str, Enum):
    """How a request ended, in the order in which causes are looked for: each request is in exactly one bucket.

    REFUSED is a constraint that cannot be enforced, INVALID any other fault of the request. VIOLATION is an answer that
    a second judge found wrong, where there is one. Only the client knows its business rules.
    """

    CLIENT_GONE = "client_gone"
    VIOLATION = "constraint_violation"
    TRANSPORT = "transport"
    OVERLOAD = "overload"
    TRUNCATION = "truncation"
    REFUSED = "constraint_refused"
    INVALID = "invalid_request"
    PARSE = "parse_failure"
    OK = "ok"


@dataclass
class Record:
    """Filled while a request is served. `ended`: finish reasons by choice. `client`: its key's digest, or its address;
    never logged."""

    origin: Origin
    endpoint: str
    log_completions: bool = False
    client: str = ""
    model: str = ""
    constraint: Constraint = field(default_factory=Constraint)
    budget_field: str = "max_tokens"
    compile_seconds: float = 0.0
    error: ApiError | None = None
    status: int = 0
    is_gone: bool = False
    ended: dict[int, str] = field(default_factory=dict)
    texts: dict[int, list[str]] = field(default_factory=dict)
    usage: dict[str, int] = field(default_factory=dict)
    timings: dict[str, float] = field(default_factory=dict)
    start: float = field(default_factory=time.perf_counter)
    first_token: float | None = None
    end: float = 0.0

    @property
    def keeps_text(self) -> bool:
        """Texts are kept only where something reads them: the parse rung, or the log."""
        return self.log_completions or self.constraint.spec.kind in _DOCUMENTS

    def take(self, events: Iterable[Event]) -> None:
        """Notes what the record needs of events that pass by."""
        if self.first_token is None:
            self.first_token = time.perf_counter()
        for event in events:
            if self.keeps_text:
                self.texts.setdefault(event.index, []).append(event.text)
            if event.finish_reason is not None:
                self.ended[event.index] = event.finish_reason
                self._add_usage(event)

    def _add_usage(self, event: Event) -> None:
        usage = event.usage or {}
        self.usage["prompt_tokens"] = max(usage.get("prompt_tokens", 0), self.usage.get("prompt_tokens", 0))
        for name in ("completion_tokens", "forced_tokens", "steps"):
            self.usage[name] = self.usage.get(name, 0) + usage.get(name, 0)
        for name, seconds in (event.timings or {}).items():
            self.timings[name] = max(seconds, self.timings.get(name, 0.0))

    def fail(self, error: ApiError) -> None:
        """Notes the error, and has it name the field of the request instead of the engine's."""
        if error.param == CONSTRAINT:
            error.param = self.constraint.field or None
        elif error.param == INPUT_IDS:
            error.param = "messages" if self.endpoint == "chat" else "prompt"
        elif error.param == "max_tokens":
            error.param = self.budget_field
        self.error = error

    @property
    def rungs(self) -> dict[str, str]:
        """The validation ladder as far as the server can climb it."""
        document = self.constraint.spec.kind in _DOCUMENTS
        done = bool(self.ended) and "length" not in self.ended.values()
        return {
            "termination": ",".join(self.ended[i] for i in sorted(self.ended)) or "none",
            "parse": ("passed" if self._parses() else "failed") if done and document else "not applicable",
            "schema": self._schema_rung,
            "semantic": "left to the client",
        }

    @property
    def _schema_rung(self) -> str:
        if self.constraint.spec is FREE:
            return "not applicable"
        if self.error is not None and self.error.label == REFUSED:
            return "refused"
        if self.error is not None and self.error.label == VIOLATION:
            return "failed"
        return "enforced by the grammar" if self.ended else "not reached"

    def _parses(self) -> bool:
        try:
            for index in self.ended:
                json.loads("".join(self.texts.get(index, ())))
        except ValueError:
            return False
        return True

    @property
    def outcome(self) -> Outcome:
        if self.is_gone:
            return Outcome.CLIENT_GONE
        if self.error is not None:
            return _of_error(self.error)
        if "length" in self.ended.values():
            return Outcome.TRUNCATION
        return Outcome.PARSE if self.rungs["parse"] == "failed" else Outcome.OK

    @property
    def seconds_per_token(self) -> float | None:
        """(end to end - first token) / tokens after the first."""
        tokens = self.usage.get("completion_tokens", 0)
        if self.first_token is None or tokens < 2:
            return None
        return max(0.0, self.end - self.first_token) / (tokens - 1)

    def log(self) -> None:
        """One line of JSON."""
        if not _LOG.isEnabledFor(logging.INFO):
            return
        first = None if self.first_token is None else self.first_token - self.start
        line: dict[str, Any] = {
            "request_id": self.origin.request_id, "trace": self.origin.trace.get("traceparent"),
            "endpoint": self.endpoint, "model": self.model, "status": self.status,
            "finish_reason": self.rungs["termination"], "backend": grammar_backend(), "rungs": self.rungs,
            "outcome": self.outcome.value, "constraint": self.constraint.spec.kind.value,
            "constraint_field": self.constraint.field, "ttft_s": _rounded(first),
            "per_token_s": _rounded(self.seconds_per_token), "total_s": _rounded(self.end - self.start),
            "compile_s": _rounded(self.compile_seconds), "usage": self.usage, "engine_s": self.timings,
        }  # fmt: skip
        if self.error is not None:
            line["error"] = self.error.message
        if self.log_completions:
            line["completions"] = ["".join(self.texts[index]) for index in sorted(self.texts)]
        _LOG.info("%s", json.dumps(line, ensure_ascii=False))


def _of_error(error: ApiError) -> Outcome:
    if error.label == VIOLATION:
        return Outcome.VIOLATION
    if error.label == REFUSED:
        return Outcome.REFUSED
    if error.status == 429 or error.label == OVERLOAD:
        return Outcome.OVERLOAD
    return Outcome.INVALID if error.status < 500 and error.status != 408 else Outcome.TRANSPORT


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 6)
