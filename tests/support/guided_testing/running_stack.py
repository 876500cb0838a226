"""The real stack as a subprocess: what `make serve` runs, on free ports."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def free_ports(count: int) -> list[int]:
    """TCP ports on loopback that nobody listens on now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [int(s.getsockname()[1]) for s in sockets]
    finally:
        for s in sockets:
            s.close()


@dataclass
class RunningStack:
    """One stack. `start` returns when its frontend answers ready; `stop` returns the seconds the stop took."""

    port: int
    http: int
    grpc: int
    metrics_port: int
    log: Path
    process: subprocess.Popen[bytes] | None = None

    @staticmethod
    def start(log: Path, timeout_s: float = 300.0, env: dict[str, str] | None = None) -> RunningStack:
        port, http, grpc, metrics_port = free_ports(4)
        stack = RunningStack(port, http, grpc, metrics_port, log)
        flags = {
            "port": stack.port,
            "http-port": stack.http,
            "grpc-port": stack.grpc,
            "metrics-port": stack.metrics_port,
        }
        command = [sys.executable, str(ROOT / "docker/local/serve.py")]
        command += [f"--{name}={value}" for name, value in flags.items()]
        with log.open("wb") as out:
            chosen = {**os.environ, "GUIDED_CHECK_ANSWERS": "true", **(env or {})}
            stack.process = subprocess.Popen(command, stdout=out, stderr=out, env=chosen)
        begin = time.monotonic()
        while not stack.is_ready():
            if stack.process.poll() is not None or time.monotonic() - begin > timeout_s:
                stack.process.terminate()
                raise RuntimeError(f"the stack did not start:\n{log.read_text(errors='replace')[-6000:]}")
            time.sleep(0.3)
        return stack

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def triton(self) -> str:
        return f"http://127.0.0.1:{self.http}"

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/health/ready", timeout=2) as response:
                return bool(response.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def get_json(self, url: str) -> object:
        with urllib.request.urlopen(url, timeout=10) as response:
            return json.load(response)

    def metric(self, name: str) -> float:
        """The sum of one metric over its labels on Triton's /metrics; raises KeyError when it is not exported."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=10) as response:
            lines = response.read().decode().splitlines()
        values = [float(line.rpartition(" ")[2]) for line in lines if line.split("{")[0].split(" ")[0] == name]
        if not values:
            raise KeyError(name)
        return sum(values)

    def leftovers(self) -> list[str]:
        """Shared-memory regions and processes of this stack that exist now."""
        assert self.process is not None
        mark = f"triton_guided_{self.process.pid}_"
        found = [str(p) for p in Path("/dev/shm").glob(f"{mark}*")]
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                command = (entry / "cmdline").read_text()
            except OSError:
                continue
            if mark in command:
                found.append(command.replace("\0", " "))
        return found

    def stop(self) -> float:
        """Ctrl-C, as a terminal sends it. Raises subprocess.TimeoutExpired after 30 s."""
        assert self.process is not None
        begin = time.monotonic()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(30)
        return time.monotonic() - begin
