"""The Triton binding: the only module that knows `triton_python_backend_utils`."""

from __future__ import annotations

import json
import os
import threading
import time
from typing import TYPE_CHECKING, Any

import triton_python_backend_utils as pb_utils
from numpy.typing import NDArray

from guided_engine import protocol
from guided_engine.protocol import Event, RequestError

if TYPE_CHECKING:
    from guided_engine.service import Service

# imports of torch and transformers stay inside `initialize`: Triton may import this file in a process of its own,
# only to read the model's configuration

_INPUTS = (
    protocol.TEXT_INPUT,
    protocol.INPUT_IDS,
    protocol.STREAM,
    protocol.SAMPLING,
    protocol.EXCLUDE_INPUT,
    protocol.CONSTRAINT,
)
_JOIN_SECONDS = 10.0
_CODES = {400: "INVALID_ARG", 429: "UNAVAILABLE", 499: "CANCELLED", 503: "UNAVAILABLE", 504: "UNAVAILABLE"}


class TritonPythonModel:
    """A decoupled model: `execute` only hands requests over; answers come from threads of its own."""

    def initialize(self, args: dict[str, str]) -> None:
        """Raises (and Triton then refuses the model) when settings, weights or architecture do not fit."""
        from guided_engine.config import EngineConfig
        from guided_engine.service import Service
        from guided_engine.versions import describe

        started = time.monotonic()
        log = pb_utils.Logger
        model_config = json.loads(args["model_config"])
        parameters = {k: v["string_value"] for k, v in model_config.get("parameters", {}).items()}
        log.log_info(describe())
        config = EngineConfig.load(parameters, os.environ)
        config = config.for_instance(args["model_instance_kind"], args["model_instance_device_id"])
        self._metrics = TritonMetrics(args["model_instance_name"])
        self._service: Service = Service(config, self._metrics, log.log_error)
        for line in self._service.facts:
            log.log_info(line)
        log.log_info(f"guided_llm is ready after {time.monotonic() - started:.1f} s")

    def execute(self, requests: list[Any]) -> None:
        for request in requests:
            reply = TritonReply(request.get_response_sender(), set(request.requested_output_names()))
            try:
                tensors = _tensors(request)
            except Exception as error:
                # raised from here it would fail every request of the call, and this one twice
                reply.fail(RequestError(f"cannot read the request: {error}", 400))
                continue
            self._service.accept(tensors, reply)

    def is_ready(self) -> bool:
        """Asked by newer servers; False once the engine's thread has died."""
        return self._service.is_healthy

    def finalize(self) -> None:
        self._service.stop(_JOIN_SECONDS)
        self._metrics.close()


def _tensors(request: Any) -> dict[str, NDArray[Any]]:
    """Copies: the request's memory is Triton's again once `execute` returns."""
    found = {name: pb_utils.get_input_tensor_by_name(request, name) for name in _INPUTS}
    return {name: tensor.as_numpy().copy() for name, tensor in found.items() if tensor is not None}


class TritonReply:
    """`responder.Reply` over a Triton response sender."""

    def __init__(self, sender: Any, outputs: set[str]) -> None:
        self._sender, self._outputs = sender, outputs

    def send(self, events: list[Event], final: bool) -> None:
        if final and not events:
            # the end of a stream whose last event is already out: no client wants an empty response for it
            self._sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
            return
        tensors = protocol.encode_events(events)
        wanted = [pb_utils.Tensor(n, a) for n, a in tensors.items() if n in self._outputs or not self._outputs]
        self._send(pb_utils.InferenceResponse(output_tensors=wanted), final)

    def fail(self, error: RequestError) -> None:
        code = getattr(pb_utils.TritonError, _CODES.get(error.status, "INTERNAL"))
        self._send(pb_utils.InferenceResponse(error=pb_utils.TritonError(error.encode(), code)), True)

    def is_cancelled(self) -> bool:
        return bool(self._sender.is_cancelled())

    def _send(self, response: Any, final: bool) -> None:
        flags = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL if final else 0
        self._sender.send(response, flags=flags)


class TritonMetrics:
    """`metrics.Backend` over Triton's metric families, labelled with the instance so that gauges do not overwrite."""

    def __init__(self, instance: str) -> None:
        from guided_engine.metrics import COUNTERS, GAUGES, HISTOGRAMS, VERSIONS
        from guided_engine.versions import versions

        labels = {"instance": instance}
        # two threads in a metric call at once crash the server (2.51)
        self._lock = threading.Lock()
        self._families: list[Any] = []
        self._metrics: dict[str, Any] = {}
        for kind, table in (("GAUGE", GAUGES), ("COUNTER", COUNTERS)):
            for name, text in table.items():
                more = versions() if name == VERSIONS else {}
                self._metrics[name] = self._family(name, text, kind).Metric(labels={**labels, **more})
        self._metrics[VERSIONS].set(1)
        for name, (text, buckets) in HISTOGRAMS.items():
            self._metrics[name] = self._family(name, text, "HISTOGRAM").Metric(labels=labels, buckets=list(buckets))

    def close(self) -> None:
        """Give the metrics back while the server still listens; at the interpreter's end that crashes the stub."""
        with self._lock:
            self._metrics.clear()
            self._families.clear()

    def set(self, name: str, value: float) -> None:
        with self._lock:
            if name in self._metrics:
                self._metrics[name].set(value)

    def add(self, name: str, value: float) -> None:
        with self._lock:
            if name in self._metrics:
                self._metrics[name].increment(value)

    def observe(self, name: str, value: float) -> None:
        with self._lock:
            if name in self._metrics:
                self._metrics[name].observe(value)

    def _family(self, name: str, text: str, kind: str) -> Any:
        family = pb_utils.MetricFamily(name=name, description=text, kind=getattr(pb_utils.MetricFamily, kind))
        # a family that is collected takes its metrics with it
        self._families.append(family)
        return family
