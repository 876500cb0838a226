"""The server under study: one that is given, or our own stack started for the time of an experiment."""

from __future__ import annotations

import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docker" / "local"))

from stack import MODEL_NAME, Ports, Stack, StackConfig, resolve_model

__all__ = ["Target", "own_stack", "resolve_model", "say"]


@dataclass(frozen=True)
class Target:
    """base_url ends in /v1. metrics_url is the engine's, "" where there is none to read. rows: the batch capacity."""

    base_url: str
    model: str
    metrics_url: str = ""
    rows: int = 32

    def metrics(self) -> dict[str, float]:
        """The engine's counters and gauges without their labels, histograms as _sum and _count; {} without a URL."""
        if not self.metrics_url:
            return {}
        with urllib.request.urlopen(self.metrics_url, timeout=10) as response:
            lines = response.read().decode().splitlines()
        rows = (line.rpartition(" ") for line in lines if line.startswith("guided_"))
        return {name.partition("{")[0]: float(value) for name, _, value in rows if "_bucket" not in name}


def say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


@contextmanager
def own_stack(environ: Mapping[str, str]) -> Iterator[Target]:
    """Our stack on free ports with these settings; the engine's metrics are read from it."""
    config = StackConfig(ports=Ports.free(), environ=environ)
    stack = Stack(config, say)
    try:
        stack.start()
        ports = config.ports
        yield Target(f"http://127.0.0.1:{ports.frontend}/v1", MODEL_NAME, f"http://127.0.0.1:{ports.metrics}/metrics")
    finally:
        stack.stop()
