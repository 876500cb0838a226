"""The wire between any client and the Triton model: tensor names, request, events, errors.

Shared with the frontend, so it needs numpy only. One request is answered by a stream of responses; each carries
`text_output` (the text added for choice 0) and, when asked for, `event` (one JSON `Event` per element).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

TEXT_INPUT = "text_input"
INPUT_IDS = "input_ids"
STREAM = "stream"
SAMPLING = "sampling_parameters"
EXCLUDE_INPUT = "exclude_input_in_output"
CONSTRAINT = "constraint"
TEXT_OUTPUT = "text_output"
EVENT = "event"

_ERROR_MARK = "guided_error:"
TOP_LOGPROBS = 20
CHOICES = 16
SHOWN_TOKENS = 32


class RequestError(ValueError):
    """A request that ends without a (further) token.

    Triton's gRPC streams lose status codes, so `encode()` puts status and fields into the error text.
    status: HTTP status (400 bad request, 429 queue full, 503 shutting down, 500 engine fault, 504 deadline).
    detail: `GrammarError.to_dict()` when a constraint was refused, else {}.
    """

    def __init__(
        self, message: str, status: int = 400, param: str | None = None, detail: Mapping[str, Any] | None = None
    ):
        super().__init__(message)
        self.message, self.status, self.param, self.detail = message, status, param, dict(detail or {})

    def encode(self) -> str:
        body = {"message": self.message, "status": self.status, "param": self.param, "detail": self.detail}
        return _ERROR_MARK + json.dumps(body, ensure_ascii=False)


def decode_error(text: str) -> RequestError:
    """The inverse of `RequestError.encode`; a text of Triton's own becomes a 500 that quotes it."""
    _, mark, body = text.partition(_ERROR_MARK)
    if not mark:
        return RequestError(text, 500)
    data = json.loads(body)
    return RequestError(data["message"], data["status"], data["param"], data["detail"])


def check_context(context: int, num_prompt: int, max_tokens: int | None, prompt: str, budget: str) -> None:
    """Raises RequestError with both numbers where prompt and answer pass the context, naming the field at fault.

    prompt, budget: the client's names of the fields that hold the prompt and `max_tokens`.
    """
    if num_prompt >= context:
        fault = f"the prompt alone has {num_prompt}, and an answer needs room"
        raise RequestError(f"the context holds {context} tokens: {fault}", param=prompt)
    if num_prompt + (max_tokens or 1) > context:
        fault = f"the prompt has {num_prompt} and {budget} asks for {max_tokens}"
        raise RequestError(f"the context holds {context} tokens: {fault}", param=budget)


@dataclass(frozen=True)
class SamplingParams:
    """How tokens are drawn and shown.

    max_tokens None: to the end of the context. logprobs k: the k best alternatives. shown_tokens: control tokens, by
    their text, that are part of the answer's text (`[/THINK]`); others are left out, and one that the vocabulary does
    not hold means nothing. jump_forward: text that the grammar forces may enter at once. priority: lower runs first.
    client: those named share rows fairly. queue_seconds: longest wait for a row, then 504; the model's limit holds too.
    """

    max_tokens: int | None = None
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int | None = None
    n: int = 1
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    logprobs: int | None = None
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    jump_forward: bool = True
    priority: int = 0
    client: str = ""
    queue_seconds: float | None = None
    shown_tokens: tuple[str, ...] = ()

    def to_json(self) -> str:
        return json.dumps(vars(self))

    @staticmethod
    def from_json(text: str) -> SamplingParams:
        """Raises RequestError naming the field: unknown key, wrong type, value out of range; null is unset."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise RequestError(f"{SAMPLING} is not JSON: {error}", param=SAMPLING) from None
        if not isinstance(data, dict):
            raise RequestError(f"{SAMPLING} must be a JSON object", param=SAMPLING)
        known = {f.name for f in fields(SamplingParams)}
        unknown = sorted(set(data) - known)
        if unknown:
            raise RequestError(f"{SAMPLING} has a key that is not honoured: {unknown[0]!r}", param=unknown[0])
        return SamplingParams(**{k: _checked(k, v) for k, v in data.items() if v is not None})


_INTEGERS = {"max_tokens": (1, 2**31 - 1), "top_k": (0, 2**31 - 1), "seed": (-(2**63), 2**64 - 1), "n": (1, CHOICES),
             "logprobs": (0, TOP_LOGPROBS), "priority": (-1000, 1000)}  # fmt: skip
_NUMBERS = {"temperature": (0.0, 2.0), "top_p": (0.0, 1.0), "min_p": (0.0, 1.0), "frequency_penalty": (-2.0, 2.0),
            "presence_penalty": (-2.0, 2.0), "repetition_penalty": (0.01, 10.0),
            "queue_seconds": (0.0, 1e6)}  # fmt: skip
_PLAIN: dict[str, tuple[type, str]] = {"jump_forward": (bool, "a bool"), "client": (str, "a str up to 256 long")}


def _checked(name: str, value: Any) -> Any:
    if name in _INTEGERS:
        low, high = _INTEGERS[name]
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise RequestError(f"{name} must be an integer from {low} to {high}, got {value!r}", param=name)
        return value
    if name in _NUMBERS:
        bottom, top = _NUMBERS[name]
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not bottom <= value <= top:
            raise RequestError(f"{name} must be a number from {bottom} to {top}, got {value!r}", param=name)
        return float(value)
    if name in _PLAIN:
        kind, told = _PLAIN[name]
        if not isinstance(value, kind) or len(str(value)) > 256:
            raise RequestError(f"{name} must be {told}, got {value!r}", param=name)
        return value
    if name == "logit_bias":
        return _checked_bias(value)
    kind = str if name in ("stop", "shown_tokens") else int
    if not isinstance(value, list) or not all(isinstance(v, kind) and not isinstance(v, bool) for v in value):
        raise RequestError(f"{name} must be a list of {kind.__name__}, got {value!r}", param=name)
    if name == "shown_tokens" and len(value) > SHOWN_TOKENS:
        raise RequestError(f"{name} limit is {SHOWN_TOKENS}, got {len(value)}", param=name)
    return tuple(value)


def _checked_bias(value: Any) -> dict[int, float]:
    try:
        bias = {int(k): float(v) for k, v in value.items()}
    except (AttributeError, TypeError, ValueError):
        raise RequestError("logit_bias must map token ids to numbers", param="logit_bias") from None
    if any(not -100 <= v <= 100 for v in bias.values()):
        raise RequestError("logit_bias values must lie from -100 to 100", param="logit_bias")
    return bias


@dataclass(frozen=True)
class GenerateRequest:
    """One generation. Exactly one of `text` and `input_ids` is set. `constraint`: `GrammarSpec` JSON, "" for none."""

    text: str | None
    input_ids: tuple[int, ...] | None
    sampling: SamplingParams
    constraint: str = ""
    stream: bool = False
    exclude_input: bool = True

    def encode(self) -> dict[str, NDArray[Any]]:
        """Triton input tensors by name."""
        tensors: dict[str, NDArray[Any]] = {
            STREAM: np.array([self.stream]),
            SAMPLING: _strings(self.sampling.to_json()),
            EXCLUDE_INPUT: np.array([self.exclude_input]),
        }
        if self.text is not None:
            tensors[TEXT_INPUT] = _strings(self.text)
        if self.input_ids is not None:
            tensors[INPUT_IDS] = np.array(self.input_ids, dtype=np.int32)
        if self.constraint:
            tensors[CONSTRAINT] = _strings(self.constraint)
        return tensors

    @staticmethod
    def decode(tensors: Mapping[str, NDArray[Any]]) -> GenerateRequest:
        """Raises RequestError naming the tensor at fault (Triton does not check optional inputs by name)."""
        text, ids = _text(tensors, TEXT_INPUT), tensors.get(INPUT_IDS)
        if (text is None) == (ids is None):
            raise RequestError(f"give exactly one of {TEXT_INPUT} and {INPUT_IDS}", param=TEXT_INPUT)
        if ids is not None and (ids.size == 0 or ids.min() < 0):
            raise RequestError(f"{INPUT_IDS} must hold at least one id, none negative", param=INPUT_IDS)
        return GenerateRequest(
            text=text,
            input_ids=None if ids is None else tuple(int(i) for i in ids.reshape(-1)),
            sampling=SamplingParams.from_json(_text(tensors, SAMPLING) or "{}"),
            constraint=_text(tensors, CONSTRAINT) or "",
            stream=_flag(tensors, STREAM, False),
            exclude_input=_flag(tensors, EXCLUDE_INPUT, True),
        )


@dataclass(frozen=True)
class TokenLogprob:
    """Log-probability of one token under the raw model distribution, with the bytes the vocabulary gives it."""

    token_id: int
    logprob: float
    bytes: tuple[int, ...]
    top: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True)
class Event:
    """What one step added to one choice.

    index: the choice, 0 <= index < n. text: decoded text added, never half a character.
    finish_reason: None until the choice's last event, then "stop" or "length".
    stop_reason: on the last event, the stop string that ended the answer.
    usage: on the last event, {"prompt_tokens", "completion_tokens", "cached_tokens", "forced_tokens", "steps"}.
    timings: on the last event, seconds {"queue", "compile", "first_token", "total"}.
    context: on the last event, how many tokens prompt and answer may have together in this engine.
    """

    index: int
    token_ids: tuple[int, ...] = ()
    text: str = ""
    logprobs: tuple[TokenLogprob, ...] | None = None
    finish_reason: str | None = None
    usage: Mapping[str, int] | None = None
    timings: Mapping[str, float] | None = None
    context: int | None = None
    stop_reason: str | None = None

    def to_json(self) -> str:
        # once a token, so without the copies that dataclasses.asdict makes
        told = {name: value for name, value in vars(self).items() if value not in (None, (), "")}
        return json.dumps(told, ensure_ascii=False, default=vars)

    @staticmethod
    def from_json(text: str) -> Event:
        data = json.loads(text)
        logprobs = data.get("logprobs")
        return Event(
            index=data["index"],
            token_ids=tuple(data.get("token_ids", ())),
            text=data.get("text", ""),
            logprobs=None if logprobs is None else tuple(_logprob(entry) for entry in logprobs),
            finish_reason=data.get("finish_reason"),
            usage=data.get("usage"),
            timings=data.get("timings"),
            stop_reason=data.get("stop_reason"),
            context=data.get("context"),
        )


def _logprob(entry: Mapping[str, Any]) -> TokenLogprob:
    top = tuple(_logprob(t) for t in entry.get("top", ()))
    return TokenLogprob(entry["token_id"], entry["logprob"], tuple(entry["bytes"]), top)


def encode_events(events: list[Event]) -> dict[str, NDArray[Any]]:
    """Triton output tensors by name."""
    text = "".join(e.text for e in events if e.index == 0)
    return {TEXT_OUTPUT: _strings(text), EVENT: _strings(*(e.to_json() for e in events))}


def _strings(*texts: str) -> NDArray[Any]:
    return np.array([t.encode("utf-8", "replace") for t in texts], dtype=np.object_)


def _text(tensors: Mapping[str, NDArray[Any]], name: str) -> str | None:
    tensor = tensors.get(name)
    if tensor is None:
        return None
    if tensor.size != 1:
        raise RequestError(f"{name} must hold one string, got {tensor.size}", param=name)
    item = tensor.reshape(-1)[0]
    try:
        return item.decode() if isinstance(item, bytes) else str(item)
    except UnicodeDecodeError as error:
        raise RequestError(f"{name} is not UTF-8: {error}", param=name) from None


def _flag(tensors: Mapping[str, NDArray[Any]], name: str, default: bool) -> bool:
    tensor = tensors.get(name)
    return default if tensor is None else bool(tensor.reshape(-1)[0])
