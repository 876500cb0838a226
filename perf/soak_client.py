"""Clients of the soak: one gRPC stream per request, of every kind, some left in the middle."""

from __future__ import annotations

import json
import random
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import grpc  # type: ignore[import-untyped]
import numpy as np
from guided_engine.protocol import EVENT, Event, GenerateRequest, SamplingParams, decode_error
from guided_grammar.spec import GrammarSpec, Kind
from jsonschema import Draft202012Validator
from tritonclient.grpc import service_pb2
from tritonclient.utils import deserialize_bytes_tensor, np_to_triton_dtype, serialize_byte_tensor

_MODEL = "guided_llm"
_STREAM = "/inference.GRPCInferenceService/ModelStreamInfer"
_TIMEOUT = 300.0
_PROMPTS = ("a support ticket", "a fantasy hero", "an invoice with two items", "the weather in Oslo", "a phone number")
_SCHEMA = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "maxLength": 16},
        "priority": {"enum": ["low", "medium", "high"]},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 8}, "maxItems": 2},
        "open": {"type": "boolean"},
    },
    "required": ["title", "priority", "open"],
    "additionalProperties": False,
}
_PATTERN = r"[A-Z]{3}-[0-9]{4}"
_CHOICES = ["yes", "no", "not sure"]


def _fits_schema(text: str) -> bool:
    return bool(Draft202012Validator(_SCHEMA).is_valid(json.loads(text)))


@dataclass(frozen=True)
class Shape:
    """A kind of request: its constraint and what a whole answer must be."""

    spec: GrammarSpec | None
    is_right: Callable[[str], bool]


SHAPES = (
    Shape(None, lambda text: True),
    Shape(GrammarSpec(Kind.JSON_SCHEMA, {"schema": _SCHEMA}), _fits_schema),
    Shape(GrammarSpec(Kind.REGEX, _PATTERN), lambda text: re.fullmatch(_PATTERN, text) is not None),
    Shape(GrammarSpec(Kind.CHOICE, _CHOICES), lambda text: text in _CHOICES),
)


class Counts:
    """What became of the requests; shared by the clients. faults: in words."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.num_whole = self.num_cut = self.num_left = 0
        self.faults: list[str] = []

    def whole(self, num_cut: int) -> None:
        """A request ended by itself; `num_cut` of its choices for want of tokens."""
        with self._lock:
            self.num_whole += 1
            self.num_cut += num_cut

    def left(self) -> None:
        with self._lock:
            self.num_left += 1

    def fault(self, text: str) -> None:
        with self._lock:
            self.faults.append(text)

    def snapshot(self) -> dict[str, int]:
        with self._lock:
            return {"whole": self.num_whole, "cut_choices": self.num_cut, "left": self.num_left,
                    "num_faults": len(self.faults)}  # fmt: skip


class Soaker(threading.Thread):
    """Sends one request after the other until `ending` is set."""

    def __init__(self, url: str, seed: int, counts: Counts, ending: threading.Event) -> None:
        super().__init__(daemon=True)
        self._random, self._counts, self._ending = random.Random(seed), counts, ending
        self._client = f"client {seed % 4}"
        self._infer = grpc.insecure_channel(url).unary_stream(
            _STREAM,
            request_serializer=service_pb2.ModelInferRequest.SerializeToString,
            response_deserializer=service_pb2.ModelStreamInferResponse.FromString,
        )

    def run(self) -> None:
        while not self._ending.is_set():
            try:
                self._one()
            except Exception as error:
                self._counts.fault(f"{type(error).__name__}: {error}"[:300])

    def _one(self) -> None:
        dice = self._random
        shape = dice.choice(SHAPES)
        sampling = SamplingParams(
            max_tokens=dice.choice((8, 48, 96)),
            temperature=dice.choice((0.0, 0.8)),
            n=dice.choice((1, 1, 1, 2)),
            seed=dice.randrange(2**31),
            priority=dice.choice((0, 0, 1)),
            client=self._client,
            jump_forward=dice.random() < 0.8,
            logprobs=2 if dice.random() < 0.1 else None,
        )
        text = f"<|im_start|>user\nWrite {dice.choice(_PROMPTS)}.<|im_end|>\n<|im_start|>assistant\n"
        constraint = shape.spec.to_json() if shape.spec else ""
        request = GenerateRequest(text, None, sampling, constraint, stream=dice.random() < 0.7)
        stays = None if dice.random() < 0.75 else dice.randrange(1, 12)
        self._follow(request, shape, stays)

    def _follow(self, request: GenerateRequest, shape: Shape, stays: int | None) -> None:
        """Read to the end, or leave after `stays` responses."""
        stream = self._infer(_message(request), timeout=_TIMEOUT)
        texts, reasons, finals = [""] * request.sampling.n, list[str](), 0
        for at, answer in enumerate(stream):
            if answer.error_message:
                raise decode_error(answer.error_message)
            finals += answer.infer_response.parameters["triton_final_response"].bool_param
            for event in _events(answer.infer_response):
                texts[event.index] += event.text
                reasons += [event.finish_reason] if event.finish_reason else []
            # a cancel that crosses the final response is Triton's to get wrong, not ours
            if stays is not None and at >= stays and len(reasons) < request.sampling.n:
                stream.cancel()
                self._counts.left()
                return
        self._judge(texts, reasons, finals, shape)

    def _judge(self, texts: list[str], reasons: list[str], finals: int, shape: Shape) -> None:
        if finals != 1 or len(reasons) != len(texts):
            self._counts.fault(f"{finals} final responses and finish reasons {reasons} for {len(texts)} choices")
        elif "length" not in reasons and not all(shape.is_right(text) for text in texts):
            self._counts.fault(f"wrong answers {texts!r} to {shape.spec}"[:300])
        else:
            self._counts.whole(reasons.count("length"))


def _message(request: GenerateRequest) -> Any:
    message = service_pb2.ModelInferRequest(model_name=_MODEL)
    # without it Triton keeps an empty final response to itself
    message.parameters["triton_enable_empty_final_response"].bool_param = True
    for name, array in request.encode().items():
        message.inputs.add(name=name, datatype=np_to_triton_dtype(array.dtype), shape=array.shape)
        is_text = array.dtype == np.object_
        message.raw_input_contents.append(serialize_byte_tensor(array).item() if is_text else array.tobytes())
    message.outputs.add(name=EVENT)
    return message


def _events(response: Any) -> Iterator[Event]:
    for output, raw in zip(response.outputs, response.raw_output_contents, strict=True):
        if output.name == EVENT:
            yield from (Event.from_json(text.decode()) for text in deserialize_bytes_tensor(raw))
