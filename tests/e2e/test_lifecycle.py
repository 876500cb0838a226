"""Failures of the parts, seen from outside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
from guided_testing.running_stack import ROOT, RunningStack


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


def test_a_killed_model_process_comes_back_by_itself(tmp_path: Path) -> None:
    stack = RunningStack.start(tmp_path / "serve.log")
    try:
        assert choose(stack) == 200
        (stub,) = processes_of(stack, "triton_python_backend_stub")
        os.kill(stub, signal.SIGKILL)
        deadline = time.monotonic() + 90
        while choose(stack) != 200:
            assert time.monotonic() < deadline, (tmp_path / "serve.log").read_text()
            time.sleep(0.5)
        assert processes_of(stack, "triton_python_backend_stub") != [stub]
    finally:
        took = stack.stop()
    assert took < 10 and stack.leftovers() == []


def test_a_taken_port_is_named_before_anything_starts(stack: RunningStack) -> None:
    command = [sys.executable, str(ROOT / "docker/local/serve.py"), f"--port={stack.port}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and f"port {stack.port} is in use" in done.stdout
