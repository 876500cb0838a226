"""The binding over a stand-in for Triton's module: what is read from a request, and what is sent back."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from guided_engine import protocol
from guided_engine.protocol import Event, RequestError


class Sender:
    def __init__(self) -> None:
        self.sent: list[tuple[Any, int]] = []

    def send(self, response: Any = None, flags: int = 0) -> None:
        self.sent.append((response, flags))

    def is_cancelled(self) -> bool:
        return False


class Tensor:
    def __init__(self, name: str, array: Any) -> None:
        self.name, self.array = name, array

    def as_numpy(self) -> Any:
        return self.array


class Request:
    def __init__(self, tensors: dict[str, Any], outputs: list[str]) -> None:
        self.tensors, self.outputs, self.sender = tensors, outputs, Sender()

    def get_response_sender(self) -> Sender:
        return self.sender

    def requested_output_names(self) -> list[str]:
        return self.outputs


@pytest.fixture
def binding(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    fake: Any = types.ModuleType("triton_python_backend_utils")
    fake.TRITONSERVER_RESPONSE_COMPLETE_FINAL = 1
    fake.Tensor = Tensor
    fake.TritonError = type(
        "TritonError", (), {"__init__": lambda self, text, code: self.__dict__.update(t=text, c=code)}
    )
    for name in ("INVALID_ARG", "UNAVAILABLE", "INTERNAL", "CANCELLED"):
        setattr(fake.TritonError, name, name)
    fake.InferenceResponse = lambda output_tensors=(), error=None: (list(output_tensors), error)
    fake.get_input_tensor_by_name = lambda request, name: (
        Tensor(name, request.tensors[name]) if name in request.tensors else None
    )
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", fake)
    monkeypatch.delitem(sys.modules, "guided_engine.triton_model", raising=False)
    import guided_engine.triton_model as module

    yield module
    monkeypatch.delitem(sys.modules, "guided_engine.triton_model", raising=False)


class Service:
    is_healthy = True

    def __init__(self) -> None:
        self.accepted: list[tuple[Any, Any]] = []

    def accept(self, tensors: Any, reply: Any) -> None:
        self.accepted.append((tensors, reply))


def test_execute_copies_the_tensors_and_hands_the_request_over(binding: Any) -> None:
    model, text = binding.TritonPythonModel(), np.array([b"hi"], object)
    model._service = Service()
    assert model.execute([Request({"text_input": text, "strange": text}, [])]) is None
    tensors, _ = model._service.accepted[0]
    assert list(tensors) == ["text_input"] and tensors["text_input"] is not text


def test_a_request_that_cannot_be_read_fails_alone(binding: Any) -> None:
    model, good = binding.TritonPythonModel(), Request({"text_input": np.array([b"hi"], object)}, [])
    model._service = Service()
    bad = Request({"text_input": None}, [])
    model.execute([bad, good])
    assert [flags for _, flags in bad.sender.sent] == [1] and len(model._service.accepted) == 1


@pytest.mark.parametrize(
    ("outputs", "sent"),
    [
        ([], ["text_output", "event"]),
        (["text_output"], ["text_output"]),
        (["text_output", "event"], ["text_output", "event"]),
    ],
)
def test_only_the_outputs_asked_for_are_sent(binding: Any, outputs: list[str], sent: list[str]) -> None:
    sender = Sender()
    binding.TritonReply(sender, set(outputs)).send([Event(0, (1,), "a")], final=False)
    (tensors, error), flags = sender.sent[0]
    assert [t.name for t in tensors] == sent and error is None and flags == 0
    assert tensors[0].as_numpy().tolist() == [b"a"]


def test_an_end_without_events_is_a_flag_and_no_response(binding: Any) -> None:
    sender = Sender()
    binding.TritonReply(sender, set()).send([], final=True)
    assert sender.sent == [(None, 1)]


@pytest.mark.parametrize(
    ("status", "code"),
    [(400, "INVALID_ARG"), (429, "UNAVAILABLE"), (499, "CANCELLED"), (500, "INTERNAL"), (503, "UNAVAILABLE")],
)
def test_an_error_is_final_and_its_text_carries_the_status(binding: Any, status: int, code: str) -> None:
    sender = Sender()
    binding.TritonReply(sender, set()).fail(RequestError("no", status, "n"))
    (_, error), flags = sender.sent[0]
    assert (flags, error.c) == (1, code)
    assert protocol.decode_error(error.t).status == status


def test_the_binding_imports_without_torch(binding: Any) -> None:
    source = binding.__file__
    with open(source) as file:
        lines = file.read().splitlines()
    assert not [line for line in lines if line.startswith(("import torch", "import transformers", "from transformers"))]
