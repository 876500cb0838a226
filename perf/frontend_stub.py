"""A model that costs nothing: a gRPC server that answers every stream with prepared bytes at a fixed pace.

The first event's text is `<arrived>:<sent> `, both CLOCK_MONOTONIC in nanoseconds, so that whoever reads it on this
machine can tell its own time from the model's. Runs as a process: `python frontend_stub.py PORT RATE TOKENS`.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

import grpc  # type: ignore[import-untyped]
from guided_engine.protocol import EVENT, Event, encode_events
from tritonclient.grpc import service_pb2
from tritonclient.utils import serialize_byte_tensor

_SERVICE = "/inference.GRPCInferenceService/"
_USAGE = {"prompt_tokens": 8, "completion_tokens": 0, "cached_tokens": 0, "forced_tokens": 0, "steps": 0}
_TIMINGS = {"queue": 0.0, "compile": 0.0, "first_token": 0.0, "total": 0.0}


def response(event: Event) -> bytes:
    """The bytes of one streamed response that carries the event."""
    answer = service_pb2.ModelInferResponse(model_name="guided_llm")
    tensor = encode_events([event])[EVENT]
    answer.outputs.add(name=EVENT, datatype="BYTES", shape=tensor.shape)
    answer.raw_output_contents.append(serialize_byte_tensor(tensor).item())
    return bytes(service_pb2.ModelStreamInferResponse(infer_response=answer).SerializeToString())


class Stub(grpc.GenericRpcHandler):  # type: ignore[misc]
    """`rate` tokens a second for each stream, `tokens` of them; 0 sends them at once."""

    def __init__(self, rate: float, tokens: int) -> None:
        self._pause, self._tokens = 1 / rate if rate else 0.0, tokens
        self._middle = response(Event(0, (7,), " word"))
        usage = {**_USAGE, "completion_tokens": tokens}
        self._last = response(Event(0, finish_reason="stop", usage=usage, timings=_TIMINGS, context=4096))

    def service(self, call: Any) -> Any:
        if call.method == f"{_SERVICE}ModelStreamInfer":
            return grpc.stream_stream_rpc_method_handler(self._stream)
        if call.method == f"{_SERVICE}ModelReady":
            return grpc.unary_unary_rpc_method_handler(self._ready)
        return None

    async def _ready(self, request: bytes, context: Any) -> bytes:
        return bytes(service_pb2.ModelReadyResponse(ready=True).SerializeToString())

    async def _stream(self, requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        async for _ in requests:
            pass
        arrived = time.monotonic_ns()
        yield response(Event(0, (7,), f"{arrived}:{time.monotonic_ns()} "))
        for place in range(1, self._tokens):
            if self._pause:
                await asyncio.sleep(max(0.0, arrived / 1e9 + place * self._pause - time.monotonic()))
            yield self._middle
        yield self._last


async def serve(port: int, rate: float, tokens: int) -> None:
    """Until it is killed."""
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((Stub(rate, tokens),))
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])))
