from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import numpy as np
import pytest
from guided_engine.protocol import (
    EVENT,
    INPUT_IDS,
    Event,
    GenerateRequest,
    RequestError,
    SamplingParams,
    encode_events,
)
from guided_frontend.backend import Origin
from guided_frontend.errors import ApiError, Busy, EngineError, Unavailable
from guided_frontend.triton_backend import TritonBackend
from tritonclient.grpc import service_pb2, service_pb2_grpc
from tritonclient.utils import serialize_byte_tensor

REQUEST = GenerateRequest(None, (1, 2, 3), SamplingParams(n=2), stream=True)
TRACE = "00-" + "ab" * 16 + "-" + "cd" * 8 + "-01"
Step = Event | str | float | None
"""A script: an event or error text to send, seconds to sleep, or None for an empty final response."""


class FakeTriton(service_pb2_grpc.GRPCInferenceServiceServicer):
    """Plays a script per stream and records what it saw of the request and of the stream's end."""

    def __init__(self, script: list[Step]) -> None:
        self.script, self.seen, self.ending = script, list[Any](), ""
        self.trace: str | None = None

    async def ModelStreamInfer(self, requests: Any, context: Any) -> AsyncIterator[Any]:
        self.ending = "cancelled"
        self.trace = dict(context.invocation_metadata()).get("traceparent")
        self.seen = [request async for request in requests]  # ends only when the client half-closes
        for step in self.script:
            if isinstance(step, float):
                await asyncio.sleep(step)
            elif isinstance(step, str):
                yield service_pb2.ModelStreamInferResponse(error_message=step)
            else:
                yield service_pb2.ModelStreamInferResponse(infer_response=_response(step))
        self.ending = "read to the end"

    async def ModelReady(self, request: Any, context: Any) -> Any:
        return service_pb2.ModelReadyResponse(ready=request.name == "guided_llm")

    async def ModelConfig(self, request: Any, context: Any) -> Any:
        answer = service_pb2.ModelConfigResponse()
        answer.config.parameters["tool_format"].string_value = "hermes"
        return answer

    async def ServerMetadata(self, request: Any, context: Any) -> Any:
        return service_pb2.ServerMetadataResponse(name="triton", version="2.51.0")


def _response(event: Event | None) -> Any:
    answer = service_pb2.ModelInferResponse(model_name="guided_llm")
    if event is not None:
        tensor = encode_events([event])[EVENT]
        output = answer.outputs.add(name=EVENT, datatype="BYTES", shape=tensor.shape)
        answer.raw_output_contents.append(serialize_byte_tensor(tensor).item())
        assert output.name == EVENT
    return answer


@asynccontextmanager
async def connected(script: list[Step], first: float = 5.0, between: float = 5.0) -> AsyncIterator[Any]:
    server, fake = grpc.aio.server(), FakeTriton(script)
    service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(fake, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    backend = TritonBackend(f"127.0.0.1:{port}", first, between)
    try:
        yield backend, fake
    finally:
        await backend.close()
        await server.stop(None)


def run(body: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(body(), 20))  # type: ignore[arg-type]


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


ENDS: list[Step] = [Event(0, finish_reason="stop"), Event(1, finish_reason="length")]


def test_events_come_in_order_and_the_stream_is_half_closed_and_read_to_its_end() -> None:
    async def body() -> None:
        async with connected([Event(0, text="a"), Event(1, text="b"), None, *ENDS]) as (backend, fake):
            events = [
                e
                async for batch in backend.generate("guided_llm", REQUEST, Origin("r1", {"traceparent": TRACE}))
                for e in batch
            ]
            assert [(e.index, e.text, e.finish_reason) for e in events] == [
                (0, "a", None), (1, "b", None), (0, "", "stop"), (1, "", "length"),
            ]  # fmt: skip
            assert fake.trace == TRACE
            assert fake.ending == "read to the end" and [r.id for r in fake.seen] == ["r1"]
            [request] = fake.seen
            place = [tensor.name for tensor in request.inputs].index(INPUT_IDS)
            assert np.frombuffer(request.raw_input_contents[place], np.int32).tolist() == [1, 2, 3]
            assert [output.name for output in request.outputs] == [EVENT]

    run(body)


def test_leaving_in_mid_generation_cancels() -> None:
    async def body() -> None:
        async with connected([Event(0, text="a"), 60.0]) as (backend, fake):
            generation = backend.generate("guided_llm", REQUEST, Origin("r"))
            assert (await generation.__anext__())[0].text == "a"
            await generation.aclose()
            await asyncio.sleep(0.2)
            assert fake.ending == "cancelled"

    run(body)


def test_leaving_after_the_last_event_reads_on_instead_of_cancelling() -> None:
    async def body() -> None:
        async with connected([*ENDS, 0.2]) as (backend, fake):
            generation = backend.generate("guided_llm", REQUEST, Origin("r"))
            await generation.__anext__()
            await generation.__anext__()
            await generation.aclose()
            await until(lambda: fake.ending == "read to the end")

    run(body)


def test_an_error_keeps_its_status_and_the_stream_is_read_to_its_end() -> None:
    async def body() -> None:
        text = RequestError("queue is full", 429).encode()
        async with connected([text, 0.1]) as (backend, fake):
            with pytest.raises(Busy, match="queue is full"):
                async for _ in backend.generate("guided_llm", REQUEST, Origin("r")):
                    pass
            await until(lambda: fake.ending == "read to the end")

    run(body)


@pytest.mark.parametrize(
    ("script", "error"),
    [
        (["Stub process is not healthy"], EngineError),
        ([Event(0, finish_reason="stop")], EngineError),
        ([], EngineError),
        ([60.0], Unavailable),
        ([Event(0, text="a"), 60.0], Unavailable),
    ],
    ids=["triton's own error", "one choice never ends", "nothing at all", "silent from the start", "falls silent"],
)
def test_a_broken_model_ends_in_an_error(script: list[Step], error: type[ApiError]) -> None:
    async def body() -> None:
        async with connected(script, first=0.3, between=0.2) as (backend, _):
            with pytest.raises(error):
                async for _ in backend.generate("guided_llm", REQUEST, Origin("r")):
                    pass

    run(body)


def test_a_slow_first_token_has_its_own_time() -> None:
    async def body() -> None:
        async with connected([0.4, *ENDS], first=5.0, between=0.2) as (backend, _):
            assert len([b async for b in backend.generate("guided_llm", REQUEST, Origin("r"))]) == 2

    run(body)


def test_a_server_that_is_away_is_unavailable_and_not_ready() -> None:
    async def body() -> None:
        backend = TritonBackend("127.0.0.1:9", 5.0, 5.0)
        with pytest.raises(Unavailable, match="did not answer"):
            async for _ in backend.generate("guided_llm", REQUEST, Origin("r")):
                pass
        with pytest.raises(Unavailable):
            await backend.parameters("guided_llm")
        assert not await backend.ready("guided_llm") and await backend.versions() == {}
        await backend.close()

    run(body)


def test_readiness_parameters_and_version_come_from_the_server() -> None:
    async def body() -> None:
        async with connected([]) as (backend, _):
            assert await backend.ready("guided_llm") and not await backend.ready("other")
            assert await backend.parameters("guided_llm") == {"tool_format": "hermes"}
            assert await backend.versions() == {"triton": "2.51.0"}

    run(body)
