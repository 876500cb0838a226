from __future__ import annotations

import importlib.util
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType

import pytest
from guided_engine.metrics import COUNTERS
from guided_engine.protocol import RequestError
from guided_testing.deployment import DOCKER


@pytest.fixture(scope="module")
def probe() -> ModuleType:
    spec = importlib.util.spec_from_file_location("server_probe", DOCKER / "server_probe.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def told(error: RequestError) -> str:
    return json.dumps({"error": f"failed: {error.encode()}"})


@pytest.mark.parametrize(
    ("status", "body", "alive"),
    [
        (200, '{"text_output":"x"}', True),
        (503, told(RequestError("queue is full: limit is 256, got 257", 429)), True),
        (503, told(RequestError("waited longer than 60 s in the queue", 504)), True),
        (500, told(RequestError("the engine stopped: OSError: gone", 500)), False),
        (503, told(RequestError("the model is shutting down", 503)), False),
        (500, '{"error":"Stub process guided_llm_0_0 is not healthy."}', False),
        (400, '{"error":"Request for unknown model"}', False),
        (502, "<html>", False),
    ],
    ids=["token", "queue full", "waited", "fault", "shutting down", "dead stub", "no model", "not Triton"],
)
def test_an_engine_that_answers_is_alive(probe: ModuleType, status: int, body: str, alive: bool) -> None:
    assert (probe.fault(status, body) == "") is alive


@contextmanager
def serving(status: int, body: str, steps: Sequence[float] = ()) -> Iterator[tuple[str, list[bytes]]]:
    """A server whose every answer is that one; its metrics show one of `steps` after the other, the last for ever."""
    asked: list[bytes] = []
    seen = iter(steps)
    last = [0.0]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            last[0] = next(seen, last[0])
            self.send_response(200 if steps else 404)
            self.end_headers()
            self.wfile.write(
                f'# TYPE guided_steps_total counter\nguided_steps_total{{instance="a"}} {last[0]}\n'.encode()
            )

        def do_POST(self) -> None:
            asked.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


DEAD = '{"error":"Stub process is not healthy."}'


@pytest.mark.parametrize(
    ("body", "steps", "alive", "requests"),
    [
        (DEAD, (100.0, 107.0), True, 0),
        (DEAD, (100.0,), False, 1),
        (DEAD, (100.0, 100.0, 101.0), True, 1),
        (DEAD, (), False, 1),
    ],
    ids=["busy: not asked", "still: asked", "one long step", "no metrics: asked"],
)
def test_an_engine_that_takes_steps_is_alive(
    probe: ModuleType, monkeypatch: pytest.MonkeyPatch, body: str, steps: Sequence[float], alive: bool, requests: int
) -> None:
    monkeypatch.setattr(probe, "_LOOK_SECONDS", 0)
    with serving(500, body, steps) as (url, asked):
        assert (probe.probe(url, f"{url}/metrics", 5) == "") is alive
    assert len(asked) == requests


def test_an_idle_engine_is_asked(probe: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_LOOK_SECONDS", 0)
    with serving(200, "{}", (100.0,)) as (url, asked):
        assert probe.probe(url, f"{url}/metrics", 5) == ""
    assert len(asked) == 1


def test_the_counter_that_the_probe_reads_exists(probe: ModuleType) -> None:
    assert probe._STEPS in COUNTERS


def test_it_asks_for_one_token(probe: ModuleType) -> None:
    with serving(200, "{}") as (url, asked):
        assert probe.ask(url, 5) == ""
    assert json.loads(json.loads(asked[0])["sampling_parameters"]) == {"max_tokens": 1}


def test_an_error_status_is_read_like_an_answer(probe: ModuleType) -> None:
    with serving(503, told(RequestError("queue is full", 429))) as (url, _):
        assert probe.ask(url, 5) == ""
    with serving(500, '{"error":"Stub process is not healthy."}') as (url, _):
        assert "not healthy" in probe.ask(url, 5)


@pytest.mark.parametrize(("status", "code"), [(200, 0), (500, 1)])
def test_the_command_exits_with_0_only_when_the_engine_is_alive(status: int, code: int) -> None:
    with serving(status, '{"error":"Stub process is not healthy."}') as (url, _):
        environ = {"TRITON_URL": url, "TRITON_METRICS_URL": f"{url}/metrics", "TRITON_PROBE_SECONDS": "5"}
        done = subprocess.run(
            [sys.executable, DOCKER / "server_probe.py"], env=environ, capture_output=True, check=False
        )
    assert done.returncode == code
    assert (b"not healthy" in done.stderr) is (code == 1)


def test_silence_counts_as_dead(probe: ModuleType) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert "timed out" in probe.ask(f"http://127.0.0.1:{silent.getsockname()[1]}", 0.2)


def test_a_closed_port_counts_as_dead(probe: ModuleType) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    assert probe.ask(f"http://127.0.0.1:{port}", 2) != ""
