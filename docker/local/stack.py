"""The whole service on one machine: model weights, tritonserver and OpenAI frontend."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from supervisor import Service
from triton_wheel import LaunchError, TritonWheel

ROOT = Path(__file__).resolve().parents[2]
MODEL_NAME = "guided_llm"
_EXIT_TIMEOUT_S = 4


@dataclass(frozen=True)
class Ports:
    """TCP ports on loopback; `frontend` is the OpenAI API."""

    frontend: int = 9000
    http: int = 8000
    grpc: int = 8001
    metrics: int = 8002

    @staticmethod
    def free() -> Ports:
        """Four ports that nobody listens on now."""
        sockets = [socket.socket() for _ in range(4)]
        try:
            for s in sockets:
                s.bind(("127.0.0.1", 0))
            return Ports(*(int(s.getsockname()[1]) for s in sockets))
        finally:
            for s in sockets:
                s.close()

    def taken(self) -> list[int]:
        """Those of the four that somebody listens on."""
        return [p for p in (self.frontend, self.http, self.grpc, self.metrics) if _listening(p)]


def _listening(port: int) -> bool:
    with socket.socket() as s:
        s.settimeout(0.5)
        return s.connect_ex(("127.0.0.1", port)) == 0


@dataclass(frozen=True)
class StackConfig:
    """model: "smollm2-135m-instruct" (embedded), a directory, or a hub id. host: where the frontend listens.

    environ: settings of both services, over those of this process.
    """

    ports: Ports = Ports()
    host: str = "127.0.0.1"
    model: str = "smollm2-135m-instruct"
    ready_s: float = 300.0
    environ: Mapping[str, str] = field(default_factory=dict)


class Stack:
    """Starts, watches and stops the two services. Not thread-safe: one owner."""

    def __init__(self, config: StackConfig, report: Callable[[str], None]) -> None:
        self._config, self._report = config, report
        self._work = Path(tempfile.mkdtemp(prefix="triton-guided-"))
        self._shm_prefix = f"triton_guided_{os.getpid()}_"
        self.server: Service | None = None
        self.frontend: Service | None = None

    def start(self) -> None:
        """Returns when the frontend answers ready. Raises LaunchError with the tail of the log at fault."""
        if taken := self._config.ports.taken():
            raise LaunchError(f"port {taken[0]} is in use; choose others with the --*-port flags")
        model = resolve_model(self._config.model)
        self.server = self._server(model)
        self.frontend = self._frontend(model)
        for service in (self.server, self.frontend):
            service.start()
            self._await(service)

    def watch(self) -> None:
        """One look at both services; restarts what is broken. Call it about twice a second."""
        for service in (self.server, self.frontend):
            if service is not None:
                service.restart_if_broken(self._report)

    def stop(self) -> None:
        """Frontend first: it cancels its streams, so that the server has nothing left to drain."""
        for service in (self.frontend, self.server):
            if service is not None:
                service.stop()
        for region in Path("/dev/shm").glob(f"{self._shm_prefix}*"):
            region.unlink(missing_ok=True)
        shutil.rmtree(self._work, ignore_errors=True)

    def _await(self, service: Service) -> None:
        last = [0.0]

        def tick(waited: float) -> None:
            if waited - last[0] >= 5:
                last[0] = waited
                self._report(f"waiting for {service.name} ({waited:.0f} s)")

        begin = time.monotonic()
        if not service.wait_ready(self._config.ready_s, tick):
            tail = "\n".join(service.tail(40))
            raise LaunchError(f"{service.name} did not become ready: {service.fault or 'timeout'}\n{tail}")
        self._report(f"{service.name} ready in {time.monotonic() - begin:.1f} s")

    def _server(self, model: Path) -> Service:
        wheel, ports = TritonWheel.find(), self._config.ports
        arguments = [
            f"--model-repository={ROOT / 'model_repository'}",
            "--disable-auto-complete-config",
            "--allow-gpu-metrics=false",
            f"--exit-timeout-secs={_EXIT_TIMEOUT_S}",
            f"--backend-config=python,shm-region-prefix-name={self._shm_prefix}",
            *(f"--{name}-address=127.0.0.1" for name in ("http", "grpc", "metrics")),
            f"--http-port={ports.http}",
            f"--grpc-port={ports.grpc}",
            f"--metrics-port={ports.metrics}",
        ]
        return Service(
            name="tritonserver",
            command=wheel.command(self._work, arguments),
            env={**wheel.environment(), **self._config.environ, "GUIDED_MODEL": str(model)},
            ready_url=f"http://127.0.0.1:{ports.http}/v2/models/{MODEL_NAME}/ready",
            log=self._work / "tritonserver.log",
            stop_s=_EXIT_TIMEOUT_S + 2,
            watch="triton_python_backend_stub",
        )

    def _frontend(self, model: Path) -> Service:
        ports = self._config.ports
        settings = {
            "GUIDED_HOST": self._config.host,
            "GUIDED_PORT": str(ports.frontend),
            "GUIDED_TRITON_URL": f"127.0.0.1:{ports.grpc}",
            "GUIDED_MODEL": str(model),
            "GUIDED_DRAIN_TIMEOUT": "1",
        }
        return Service(
            name="frontend",
            command=[sys.executable, "-m", "guided_frontend"],
            env={**os.environ, **self._config.environ, **settings},
            ready_url=f"http://127.0.0.1:{ports.frontend}/health/ready",
            log=self._work / "frontend.log",
            stop_s=2.0,
        )

    @property
    def logs(self) -> Path:
        return self._work


def resolve_model(model: str) -> Path:
    """Directory of the weights, converted on first use. Raises LaunchError when there are none."""
    command = [sys.executable, "-m", "guided_engine.weights", "--model", model]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise LaunchError(f"no weights for model {model!r}")
    return Path(done.stdout.strip().splitlines()[-1])
