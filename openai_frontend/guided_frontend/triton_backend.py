"""Backend over one gRPC channel to tritonserver.

Rules that keep the server healthy: one stream per request, half-closed right after the request; read to the end;
cancel only in mid-generation, since a cancel that crosses the final response leaks the request in the server.

Streams are read without tritonclient's result objects, which cost more than everything else done for a token.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from typing import Any

import grpc  # type: ignore[import-untyped]
import numpy as np
import tritonclient.grpc.aio as triton
from guided_engine.protocol import EVENT, Event, GenerateRequest, decode_error
from numpy.typing import NDArray
from tritonclient.grpc import service_pb2
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

from guided_frontend.backend import Origin
from guided_frontend.errors import STUCK, ApiError, EngineError, Unavailable, of_engine

_DRAIN_SECONDS = 30.0
_ASK_SECONDS = 5.0
_STREAM = "/inference.GRPCInferenceService/ModelStreamInfer"
_SIZE = 4
"""Bytes of the length before each element of a string tensor, little-endian."""
_RECONNECT_MS = 500
# of a message: the document that a client waits for has no bound of its own. gRPC would wait longer after each failure,
# and so be away for half as long again as the server was
_CHANNEL = [
    *(("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)),
    *((f"grpc.{which}_reconnect_backoff_ms", _RECONNECT_MS) for which in ("initial", "max")),
]


class TritonBackend:
    """`first_timeout`, `token_timeout`: seconds without a response after which the model counts as stuck."""

    def __init__(self, url: str, first_timeout: float, token_timeout: float) -> None:
        self._client = triton.InferenceServerClient(url, channel_args=_CHANNEL)
        self._channel = grpc.aio.insecure_channel(url, options=_CHANNEL)
        # one request, then the half-close: on the wire a stream of one
        self._infer = self._channel.unary_stream(
            _STREAM,
            request_serializer=service_pb2.ModelInferRequest.SerializeToString,
            response_deserializer=service_pb2.ModelStreamInferResponse.FromString,
        )
        self._first_timeout, self._token_timeout = first_timeout, token_timeout
        self._drains: set[asyncio.Task[None]] = set()

    async def generate(self, model: str, request: GenerateRequest, origin: Origin) -> AsyncGenerator[list[Event], None]:
        stream = self._infer(_message(model, request, origin.request_id), metadata=tuple(origin.trace.items()))
        watch = _Watch(stream, self._first_timeout)
        unfinished = request.sampling.n
        ended = failed = False
        try:
            async with aclosing(_read(stream, watch)) as batches:
                async for events in batches:
                    unfinished -= sum(event.finish_reason is not None for event in events)
                    watch.restart(self._token_timeout)
                    yield events
            ended = True
        except ApiError:
            failed = True
            raise
        finally:
            watch.stop()
            if not ended:
                self._leave(stream, mid_generation=unfinished > 0 and not failed)
        if unfinished > 0:
            raise EngineError("the model ended the answer without a finish reason")

    def _leave(self, stream: Any, mid_generation: bool) -> None:
        if mid_generation:
            stream.cancel()
            return
        task = asyncio.get_running_loop().create_task(_drain(stream))
        self._drains.add(task)
        task.add_done_callback(self._drains.discard)

    async def parameters(self, model: str) -> Mapping[str, str]:
        try:
            answer = await self._client.get_model_config(model, as_json=True, client_timeout=_ASK_SECONDS)
        except (InferenceServerException, grpc.RpcError) as error:
            raise _unreachable(error) from None
        found = answer["config"].get("parameters", {})
        return {name: value.get("string_value", "") for name, value in found.items()}

    async def versions(self) -> Mapping[str, str]:
        try:
            answer = await self._client.get_server_metadata(as_json=True, client_timeout=2)
        except (InferenceServerException, grpc.RpcError):
            return {}
        return {str(answer["name"]): str(answer["version"])}

    async def ready(self, model: str) -> bool:
        try:
            return bool(await self._client.is_model_ready(model, client_timeout=2))
        except (InferenceServerException, grpc.RpcError):
            return False

    async def close(self) -> None:
        await self._channel.close()
        await self._client.close()


class _Watch:
    """Cancels a stream that stays silent. A restart moves the deadline; the timer looks at it when it is due."""

    def __init__(self, stream: Any, seconds: float) -> None:
        self._stream, self.expired = stream, False
        self._loop = asyncio.get_running_loop()
        self._deadline = self._loop.time() + seconds
        self._timer = self._loop.call_at(self._deadline, self._expire)

    def restart(self, seconds: float) -> None:
        self._deadline = self._loop.time() + seconds
        if self._deadline < self._timer.when():
            self._timer.cancel()
            self._timer = self._loop.call_at(self._deadline, self._expire)

    def stop(self) -> None:
        self._timer.cancel()

    def _expire(self) -> None:
        if self._loop.time() < self._deadline:
            self._timer = self._loop.call_at(self._deadline, self._expire)
            return
        self.expired = True
        self._stream.cancel()


async def _read(stream: Any, watch: _Watch) -> AsyncGenerator[list[Event], None]:
    try:
        async for answer in stream:
            if answer.error_message:
                raise of_engine(decode_error(answer.error_message))
            events = _events(answer.infer_response)
            if events:
                yield events
    except asyncio.CancelledError:
        if watch.expired:
            raise Unavailable("the model sent nothing for too long", label=STUCK) from None
        raise
    except (InferenceServerException, grpc.RpcError) as error:
        raise _unreachable(error) from None


def _events(response: Any) -> list[Event]:
    """Events of one response; the last one of a stream may have no outputs."""
    for output, raw in zip(response.outputs, response.raw_output_contents, strict=True):
        if output.name == EVENT:
            return [Event.from_json(text.decode()) for text in _elements(raw)]
    return []


def _elements(raw: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(raw):
        end = start + _SIZE + int.from_bytes(raw[start : start + _SIZE], "little")
        yield raw[start + _SIZE : end]
        start = end


def _raw(array: NDArray[Any]) -> bytes:
    """The wire's form of a tensor; strings have their lengths before them."""
    if array.dtype != np.object_:
        return array.tobytes()
    return b"".join(len(text).to_bytes(_SIZE, "little") + text for text in array.reshape(-1))


def _message(model: str, request: GenerateRequest, request_id: str) -> Any:
    message = service_pb2.ModelInferRequest(model_name=model, id=request_id)
    for name, array in request.encode().items():
        message.inputs.add(name=name, datatype=np_to_triton_dtype(array.dtype), shape=array.shape)
        message.raw_input_contents.append(_raw(array))
    message.outputs.add(name=EVENT)
    return message


async def _drain(stream: Any) -> None:
    async def rest() -> None:
        async for _ in stream:
            pass

    try:
        await asyncio.wait_for(rest(), _DRAIN_SECONDS)
    except (asyncio.TimeoutError, asyncio.CancelledError, InferenceServerException, grpc.RpcError):
        stream.cancel()


def _unreachable(error: Exception) -> Unavailable:
    detail = error.details() if isinstance(error, grpc.RpcError) and hasattr(error, "details") else str(error)
    return Unavailable(f"the model server did not answer: {detail}", label="transport")
