"""Backend over one gRPC channel to tritonserver.

Rules that keep the server healthy: one stream per request, half-closed right after the request; read to the end;
cancel only in mid-generation, since a cancel that crosses the final response leaks the request in the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

import grpc  # type: ignore[import-untyped]
import tritonclient.grpc.aio as triton
from guided_engine.protocol import EVENT, Event, GenerateRequest, decode_error, decode_events
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

from guided_frontend.backend import Origin
from guided_frontend.errors import STUCK, ApiError, EngineError, Unavailable, of_engine

_DRAIN_SECONDS = 30.0
_ASK_SECONDS = 5.0


class TritonBackend:
    """`first_timeout`, `token_timeout`: seconds without a response after which the model counts as stuck."""

    def __init__(self, url: str, first_timeout: float, token_timeout: float) -> None:
        self._client = triton.InferenceServerClient(url)
        self._first_timeout, self._token_timeout = first_timeout, token_timeout
        self._drains: set[asyncio.Task[None]] = set()

    async def generate(self, model: str, request: GenerateRequest, origin: Origin) -> AsyncGenerator[list[Event], None]:
        stream = self._client.stream_infer(_one(model, request, origin.request_id), headers=dict(origin.trace))
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
        await self._client.close()


class _Watch:
    """Cancels a stream that stays silent; rearmed at each response, cheaper than a task per response."""

    def __init__(self, stream: Any, seconds: float) -> None:
        self._stream, self.expired = stream, False
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(seconds, self._expire)

    def restart(self, seconds: float) -> None:
        self._timer.cancel()
        self._timer = self._loop.call_later(seconds, self._expire)

    def stop(self) -> None:
        self._timer.cancel()

    def _expire(self) -> None:
        self.expired = True
        self._stream.cancel()


async def _read(stream: Any, watch: _Watch) -> AsyncGenerator[list[Event], None]:
    try:
        async for result, error in stream:
            if error is not None:
                raise of_engine(decode_error(error.message()))
            tensor = result.as_numpy(EVENT)
            if tensor is not None and tensor.size:
                yield decode_events(tensor)
    except asyncio.CancelledError:
        if watch.expired:
            raise Unavailable("the model sent nothing for too long", label=STUCK) from None
        raise
    except (InferenceServerException, grpc.RpcError) as error:
        raise _unreachable(error) from None


async def _one(model: str, request: GenerateRequest, request_id: str) -> AsyncIterator[dict[str, Any]]:
    tensors = []
    for name, array in request.encode().items():
        tensor = triton.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype))
        tensor.set_data_from_numpy(array)
        tensors.append(tensor)
    outputs = [triton.InferRequestedOutput(EVENT)]
    yield {"model_name": model, "inputs": tensors, "outputs": outputs, "request_id": request_id}


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
