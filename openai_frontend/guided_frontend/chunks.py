"""Engine events to OpenAI messages, whole or in deltas. Pure.

The whole message is the sum of the deltas, so both ways of answering give the same text, calls and reasoning.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from guided_engine.protocol import Event, TokenLogprob

from guided_frontend.reasoning import ReasoningSplitter
from guided_frontend.tool_calls import CallArguments, CallEnd, CallParser, CallStart, Piece, ReasoningPiece, TextPiece

DONE = b"data: [DONE]\n\n"
_LOWEST = -9999.0
_LINE_ENDS = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}
_PLACE: dict[str, Any] = {"\ue000": 0}
_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass(frozen=True)
class Delta:
    """What one chunk adds to one choice. `call`: index of the call that `call_id`/`name`/`arguments` belong to."""

    content: str = ""
    reasoning: str = ""
    call: int | None = None
    call_id: str = ""
    name: str = ""
    arguments: str = ""

    def to_dict(self) -> dict[str, Any]:
        if self.call is None:
            body: dict[str, Any] = {"content": self.content} if self.content else {}
            return body | ({"reasoning_content": self.reasoning, "reasoning": self.reasoning} if self.reasoning else {})
        function: dict[str, Any] = {"arguments": self.arguments}
        entry: dict[str, Any] = {"index": self.call, "function": function}
        if self.name:
            entry |= {"id": self.call_id, "type": "function"}
            entry["function"] = {"name": self.name, **function}
        return {"tool_calls": [entry]}


@dataclass
class ChoiceReader:
    """One choice as it arrives. `calls`, `thoughts`: the parsers it goes through, None for plain text."""

    index: int
    calls: CallParser | None
    thoughts: ReasoningSplitter | None
    new_id: Callable[[], str]
    finish_reason: str | None = None
    text: list[str] = field(default_factory=list)
    _num_started: int = 0

    def feed(self, event: Event) -> list[Delta]:
        """Deltas of one event; the last event also gives what was held back and sets `finish_reason`."""
        self.text.append(event.text)
        deltas = self._split(event.text)
        if event.finish_reason is not None:
            deltas += self._finish()
            self.finish_reason = self._reason(event.finish_reason)
        return deltas

    def _split(self, text: str) -> list[Delta]:
        if self.thoughts is None:
            return self._answer(text)
        reasoning, answer = self.thoughts.feed(text)
        return ([Delta(reasoning=reasoning)] if reasoning else []) + self._answer(answer)

    def _answer(self, text: str) -> list[Delta]:
        if self.calls is None:
            return [Delta(content=text)] if text else []
        return list(self._deltas(self.calls.feed(text)))

    def _finish(self) -> list[Delta]:
        deltas: list[Delta] = []
        if self.thoughts is not None:
            reasoning, answer = self.thoughts.finish()
            deltas = ([Delta(reasoning=reasoning)] if reasoning else []) + self._answer(answer)
        return deltas if self.calls is None else deltas + list(self._deltas(self.calls.finish()))

    def _deltas(self, pieces: Iterable[Piece]) -> Iterable[Delta]:
        for piece in pieces:
            if isinstance(piece, TextPiece):
                yield Delta(content=piece.text)
            elif isinstance(piece, ReasoningPiece):
                yield Delta(reasoning=piece.text)
            elif isinstance(piece, CallStart):
                yield Delta(call=self._num_started, call_id=piece.id or self.new_id(), name=piece.name)
                self._num_started += 1
            elif isinstance(piece, CallArguments):
                yield Delta(call=self._num_started - 1, arguments=piece.text)
            else:
                assert isinstance(piece, CallEnd)

    def _reason(self, engine: str) -> str:
        """`length` is what it is; a stop after complete calls is `tool_calls`."""
        return "tool_calls" if engine == "stop" and self.calls is not None and self.calls.num_calls else engine


@dataclass
class MessageBuilder:
    """The sum of one choice's deltas."""

    content: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    logprobs: list[dict[str, Any]] = field(default_factory=list)

    def add(self, delta: Delta) -> None:
        self.content.append(delta.content)
        self.reasoning.append(delta.reasoning)
        if delta.name:
            function = {"name": delta.name, "arguments": ""}
            self.calls.append({"id": delta.call_id, "type": "function", "function": function})
        if delta.call is not None:
            self.calls[delta.call]["function"]["arguments"] += delta.arguments

    def to_dict(self) -> dict[str, Any]:
        """`content` is null where the answer is calls or unfinished reasoning only."""
        content, reasoning = "".join(self.content), "".join(self.reasoning)
        empty = not content and (self.calls or reasoning)
        message: dict[str, Any] = {"role": "assistant", "content": None if empty else content, "refusal": None}
        if self.calls:
            message["tool_calls"] = self.calls
        if reasoning:
            message |= {"reasoning_content": reasoning, "reasoning": reasoning}
        return message


@dataclass(frozen=True)
class Envelope:
    """What all chunks of one answer share."""

    id: str
    created: int
    model: str
    fingerprint: str

    def whole(self, choices: list[dict[str, Any]], usage: Mapping[str, Any]) -> dict[str, Any]:
        return self._body("chat.completion", choices) | {"usage": usage}

    def chunk(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return self._body("chat.completion.chunk", choices)

    def frame(self, with_usage: bool) -> Frame:
        """What stands around the one choice of each chunk; `usage` is null until the end where it was asked for."""
        before, after = _ENCODE(self.chunk([_PLACE])).split(_ENCODE(_PLACE))
        return Frame(
            f"data: {before}".encode(), (f'{after[:-1]},"usage":null}}' if with_usage else after).encode() + b"\n\n"
        )

    def _body(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": self.id, "object": kind, "created": self.created, "model": self.model,
            "system_fingerprint": self.fingerprint, "choices": choices,
        }  # fmt: skip


@dataclass(frozen=True)
class Frame:
    """A server-sent event without its choice. Most of an event is the same for the whole stream."""

    before: bytes
    after: bytes

    def sse(self, choice: Mapping[str, Any]) -> bytes:
        return self.before + _line(choice) + self.after


def chunk_choice(
    index: int, delta: Mapping[str, Any], finish_reason: str | None, logprobs: list[dict[str, Any]] | None
) -> dict[str, Any]:
    """One entry of a chunk's `choices`."""
    held = None if logprobs is None else {"content": logprobs, "refusal": None}
    return {"index": index, "delta": delta, "logprobs": held, "finish_reason": finish_reason}


def sse(body: Mapping[str, Any]) -> bytes:
    """One server-sent event."""
    return b"data: " + _line(body) + b"\n\n"


def _line(body: Mapping[str, Any]) -> bytes:
    """Compact JSON that stays one line for clients that split text where Unicode does."""
    text = _ENCODE(body)
    return (text if text.isascii() else text.translate(_LINE_ENDS)).encode("utf-8", "replace")


def logprob(entry: TokenLogprob) -> dict[str, Any]:
    """OpenAI's form; `bytes` are those of the vocabulary, so half a character is told as it is."""
    return {**_token(entry), "top_logprobs": [_token(other) for other in entry.top]}


def _token(entry: TokenLogprob) -> dict[str, Any]:
    raw = bytes(entry.bytes)
    return {"token": raw.decode("utf-8", "replace"), "logprob": max(entry.logprob, _LOWEST), "bytes": list(raw)}


def usage(last_events: Iterable[Event]) -> dict[str, Any]:
    """OpenAI's usage over all choices, which share one prompt."""
    found = [event.usage for event in last_events if event.usage is not None]
    prompt = max((u.get("prompt_tokens", 0) for u in found), default=0)
    completion = sum(u.get("completion_tokens", 0) for u in found)
    cached = max((u.get("cached_tokens", 0) for u in found), default=0)
    reasoning = sum(u.get("reasoning_tokens", 0) for u in found)
    return {
        "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }  # fmt: skip
