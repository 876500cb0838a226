"""The command itself, with no server to talk to."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from guided_testing.scripted_backend import write_model

MESSAGES = [{"role": "user", "content": "x"}]


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@pytest.fixture(scope="module")
def lonely(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[subprocess.Popen[bytes], httpx.Client]]:
    """The process, whose server is away, and a client of it."""
    port, model = free_port(), write_model(tmp_path_factory.mktemp("model"))
    environ = {**os.environ, "GUIDED_MODEL": str(model), "GUIDED_TRITON_URL": "127.0.0.1:9", "GUIDED_PORT": str(port)}
    process = subprocess.Popen([sys.executable, "-m", "guided_frontend"], env=environ, stderr=subprocess.DEVNULL)
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30, verify=False) as client:
        try:
            _await(client)
            yield process, client
        finally:
            process.kill()
            process.wait()


def _await(client: httpx.Client) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            if client.get("/health").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise TimeoutError("the frontend did not start")


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"guided_regex": "("}, 400),
        ({"guided_json": {"type": "object", "properties": {"a": {"pattern": "(?=x)"}}}}, 400),
        ({"temperature": 9}, 400),
        ({"model": "nope"}, 404),
        ({"guided_regex": "[a-z]"}, 503),
        ({"stream": True}, 503),
    ],
)
def test_p6_what_is_wrong_is_refused_and_what_is_right_waits_for_the_engine(
    lonely: tuple[subprocess.Popen[bytes], httpx.Client], fields: dict[str, Any], status: int
) -> None:
    answer = lonely[1].post("/v1/chat/completions", json={"messages": MESSAGES, **fields})
    assert answer.status_code == status == answer.json()["error"]["code"]


def test_it_is_alive_but_not_ready(lonely: tuple[subprocess.Popen[bytes], httpx.Client]) -> None:
    assert lonely[1].get("/health/ready").status_code == 503
    assert lonely[1].get("/version").json()["server"] == {}


def test_a_signal_ends_it_and_its_workers_within_seconds(
    lonely: tuple[subprocess.Popen[bytes], httpx.Client],
) -> None:
    process, _ = lonely
    workers = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    process.send_signal(signal.SIGTERM)
    process.wait(10)
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]


def test_a_folder_without_a_tokenizer_ends_it_with_the_reason(tmp_path: Path) -> None:
    environ = {**os.environ, "GUIDED_MODEL": str(tmp_path), "GUIDED_TRITON_URL": "127.0.0.1:9"}
    done = subprocess.run(
        [sys.executable, "-m", "guided_frontend"], env=environ, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode != 0 and done.stderr.splitlines()[-1].startswith("cannot start: no tokenizer.json")
