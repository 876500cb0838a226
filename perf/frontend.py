"""What the frontend costs: added time per request, processor time per streamed chunk, memory, behaviour under overload.

The model is `frontend_stub.py`, so every figure is the frontend's own: `added` is what a client waits for its first
chunk beyond the time that the stub itself took. Prints one JSON line per figure.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from typing import Any

from frontend_load import Seen, Target, ask, floor, together
from stamp import stamp

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/support"))

from guided_testing.running_stack import free_ports  # noqa: E402
from guided_testing.scripted_backend import write_model  # noqa: E402

_TICKS = os.sysconf("SC_CLK_TCK")
_WORKERS = 16


@dataclass(frozen=True)
class Front:
    """A frontend before a stub."""

    process: int
    target: Target
    model_port: int

    @property
    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    @property
    def rss_mib(self) -> float:
        status = Path(f"/proc/{self.process}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024


@contextmanager
def running(rate: float, tokens: int, *flags: str) -> Iterator[Front]:
    """Both processes, ready. `rate` and `tokens`: the stub's, for each stream."""
    port, model_port = free_ports(2)
    with tempfile.TemporaryDirectory() as folder:
        write_model(Path(folder))
        stub = [sys.executable, str(ROOT / "perf/frontend_stub.py"), str(model_port), str(rate), str(tokens)]
        front = [sys.executable, "-m", "guided_frontend", f"--port={port}", f"--triton-url=127.0.0.1:{model_port}"]
        commands = [stub, [*front, f"--model={folder}", *flags]]
        processes = [subprocess.Popen(c, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for c in commands]
        try:
            _wait(port)
            yield Front(processes[1].pid, Target.streaming(port), model_port)
        finally:
            for process in processes:
                process.send_signal(signal.SIGTERM)
            for process in processes:
                process.wait(30)


def _wait(port: int) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health/ready", timeout=1).close()
            return
        except (urllib.error.URLError, OSError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def _spread(values: list[float]) -> dict[str, float]:
    cut = quantiles(values, n=100) if len(values) > 1 else values * 99
    return {"p50": round(cut[49], 3), "p95": round(cut[94], 3), "p99": round(cut[98], 3)}


def streams(count: int, rate: float, tokens: int) -> dict[str, Any]:
    """`count` streams at once, begun 25 ms apart."""
    with running(rate, tokens, "--max-concurrent=1000") as front:
        asyncio.run(together(front.target, 32))
        before = front.cpu_seconds
        seen = asyncio.run(together(front.target, count, stagger=0.025))
        used = front.cpu_seconds - before
        read, bare = asyncio.run(floor(front.model_port, count))
    chunks = sum(one.chunks for one in seen)
    return {
        "case": "streams", "streams": count, "tokens_per_second": rate, "tokens": tokens,
        "whole": sum(one.is_whole for one in seen), "added_ms": _spread([one.added_ms for one in seen]),
        "cpu_us_per_chunk": round(used / chunks * 1e6, 1), "chunks": chunks,
        "cpu_us_per_message_of_a_bare_grpc_reader": round(bare / read * 1e6, 1),
    }  # fmt: skip


def overload(factor: float, seconds: float) -> dict[str, Any]:
    """Offered load of `factor` times what 40 rows of one second each can serve; the same at 0.8 for comparison."""

    async def offer(front: Front, per_second: float) -> list[Seen]:
        return await together(front.target, int(per_second * seconds), stagger=1 / per_second)

    rows = 40
    with running(20.0, 20, f"--max-concurrent={rows}", "--max-queued=8", "--queue-timeout=2") as front:
        asyncio.run(together(front.target, 8))
        calm = asyncio.run(offer(front, rows * 0.8))
        rush = asyncio.run(offer(front, rows * factor))
    refused = [one for one in rush if one.status != 200]
    return {
        "case": "overload", "factor": factor, "offered": len(rush),
        "statuses": {str(s): sum(one.status == s for one in rush) for s in sorted({one.status for one in rush})},
        "refusals_with_retry_after": sum(one.retry_after != "" for one in refused), "refused": len(refused),
        "seconds_at_0.8": _spread([one.seconds for one in calm if one.status == 200]),
        "seconds_accepted": _spread([one.seconds for one in rush if one.status == 200]),
    }  # fmt: skip


def memory(requests: int, seconds: float) -> dict[str, Any]:
    """Resident memory while requests of four tokens go through, until there were enough or the time is up."""

    async def work(front: Front, counts: list[int], deadline: float) -> None:
        while sum(counts) < requests and time.monotonic() < deadline:
            seen = await ask(front.target)
            counts[0] += seen.is_whole

    async def measure(front: Front) -> list[tuple[int, float]]:
        counts, samples = [0], []
        deadline = time.monotonic() + seconds
        tasks = [asyncio.create_task(work(front, counts, deadline)) for _ in range(_WORKERS)]
        while not all(task.done() for task in tasks):
            await asyncio.sleep(seconds / 20)
            samples.append((counts[0], round(front.rss_mib, 1)))
        return samples

    with running(0.0, 4) as front:
        samples = asyncio.run(measure(front))
    return {"case": "memory", "requests": samples[-1][0], "rss_mib_by_requests": samples}


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["streams", "overload", "memory"])
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=240.0, help="at most, for the memory case")
    asked = parser.parse_args()
    cases: dict[str, Callable[[], dict[str, Any]]] = {
        "streams": lambda: streams(200, 10.0, 100), "overload": lambda: overload(5.0, 6.0),
        "memory": lambda: memory(asked.requests, asked.seconds),
    }  # fmt: skip
    print(json.dumps(stamp()), flush=True)
    for name, run in cases.items():
        if asked.only in (None, name):
            print(json.dumps(run()), flush=True)


if __name__ == "__main__":
    main()
