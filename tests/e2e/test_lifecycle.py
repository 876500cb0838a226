"""Failures of the parts, seen from outside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from guided_testing.running_stack import ROOT, RunningStack

BACK_SECONDS = 30.0


def processes_of(stack: RunningStack, name: str) -> list[int]:
    """Process ids below the launcher whose command line contains `name`."""
    assert stack.process is not None
    mark = f"triton_guided_{stack.process.pid}_"
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_text()
        except OSError:
            continue
        if mark in command and name in command.split("\0")[0]:
            found.append(int(entry.name))
    return found


def choose(stack: RunningStack) -> int:
    body = {"messages": [{"role": "user", "content": "Is fire hot?"}], "guided_choice": ["yes", "no"]}
    try:
        return httpx.post(f"{stack.url}/v1/chat/completions", json=body, timeout=60).status_code
    except httpx.TransportError:
        return 0


@pytest.fixture(scope="module")
def fragile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    """A stack of its own, whose parts may be killed."""
    stack = RunningStack.start(tmp_path_factory.mktemp("fragile") / "serve.log")
    try:
        yield stack
    finally:
        took = stack.stop()
    assert took < 10 and stack.leftovers() == []


def long_stream(stack: RunningStack, started: threading.Event) -> list[str]:
    """Lines of an answer that is not over when something is killed."""
    body = {"messages": [{"role": "user", "content": "x"}], "stream": True, "guided_regex": "[a-z ]{3000,3050}"}
    lines = []
    with httpx.stream("POST", f"{stack.url}/v1/chat/completions", json=body, timeout=90) as answer:
        for line in answer.iter_lines():
            lines.append(line)
            if len(lines) > 8:
                started.set()
    return lines


@pytest.mark.parametrize("name", ["triton_python_backend_stub", "tritonserver"])
def test_after_a_kill_streams_end_with_an_error_and_the_service_comes_back_by_itself(
    fragile: RunningStack, name: str
) -> None:
    assert choose(fragile) == 200
    started = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        streamed = pool.submit(long_stream, fragile, started)
        assert started.wait(30)
        (victim,) = processes_of(fragile, name)
        os.kill(victim, signal.SIGKILL)
        killed = time.monotonic()
        lines = [line for line in streamed.result(BACK_SECONDS) if line]
    error = json.loads(lines[-1].removeprefix("data: "))["error"]
    assert error["code"] in (500, 503)
    was_unready = False
    while choose(fragile) != 200 or not was_unready:
        was_unready = was_unready or not fragile.is_ready()
        assert time.monotonic() - killed < BACK_SECONDS, fragile.log.read_text()[-6000:]
        time.sleep(0.2)
    assert victim not in processes_of(fragile, name)
    assert fragile.metric("guided_running_rows") == 0


def test_a_taken_port_is_named_before_anything_starts(stack: RunningStack) -> None:
    command = [sys.executable, str(ROOT / "docker/local/serve.py"), f"--port={stack.port}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and f"port {stack.port} is in use" in done.stdout
