"""Mixed load on a stack of its own, with clients that leave; what must stay flat is watched.

    python perf/soak.py [--minutes 30] [--clients 12] [--seed 0]

One JSON line every ten seconds and a verdict; exit status 1 when it is not met. It is not met when the memory of the
server's processes, or its shared memory, grows by more than 5 % from the second sixth of the run to the last (the first
warms up), when a request that nobody left ends in anything but one finish reason per choice and one final response,
when a constrained answer is wrong, or when a row or a waiting choice is left over at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import threading
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from soak_client import Counts, Soaker
from stamp import stamp

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docker" / "local"))

from stack import Ports, Stack, StackConfig  # noqa: E402
from supervisor import descendants  # noqa: E402

_EVERY = 10.0
_GROWTH = 1.05
_DRAIN_SECONDS = 60.0


@dataclass(frozen=True)
class Look:
    """Bytes at one moment: resident in the server's processes (shared pages once), and of its shared memory."""

    seconds: float
    resident: int
    shared: int


def look(pid: int, seconds: float) -> Look:
    regions = sum(region.stat().st_size for region in Path("/dev/shm").glob(f"triton_guided_{os.getpid()}_*"))
    return Look(seconds, sum(_proportional(p) for p in (pid, *descendants(pid))), regions)


def _proportional(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def gauges(port: int, names: tuple[str, ...]) -> dict[str, float]:
    """Sums over the labels of the server's metrics."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as response:
        lines = response.read().decode().splitlines()
    return {
        n: sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith((f"{n}{{", f"{n} "))) for n in names
    }


def grown(looks: list[Look], field: str) -> float:
    """Median of the last sixth over that of the second sixth."""
    sixth = len(looks) // 6
    early, late = looks[sixth : 2 * sixth], looks[-sixth:]
    before, after = (statistics.median(getattr(entry, field) for entry in part) for part in (early, late))
    return float(after / before) if before else 1.0


def left_over(port: int) -> dict[str, float]:
    """Running rows and waiting choices once the load has ended; zeros, or what is left after a minute."""
    deadline = time.monotonic() + _DRAIN_SECONDS
    while True:
        left = gauges(port, ("guided_running_rows", "guided_waiting_choices"))
        if not any(left.values()) or time.monotonic() > deadline:
            return left
        time.sleep(1)


def soak(stack: Stack, ports: Ports, seconds: float, clients: int, seed: int) -> tuple[list[Look], Counts]:
    """Run the load, looking every ten seconds."""
    assert stack.server is not None and stack.server.process is not None
    counts, ending, pid = Counts(), threading.Event(), stack.server.process.pid
    soakers = [Soaker(f"127.0.0.1:{ports.grpc}", seed * 1000 + i, counts, ending) for i in range(clients)]
    for soaker in soakers:
        soaker.start()
    started, looks = time.monotonic(), list[Look]()
    while time.monotonic() - started < seconds:
        time.sleep(min(_EVERY, max(0.1, seconds / 12)))
        looks.append(look(pid, round(time.monotonic() - started, 1)))
        say(metric="soak", **vars(looks[-1]), **counts.snapshot())
    ending.set()
    for soaker in soakers:
        soaker.join(120)
    return looks, counts


def say(**fields: Any) -> None:
    print(json.dumps(fields), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--clients", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    config = StackConfig(ports=Ports.free())
    stack = Stack(config, lambda text: print(text, file=sys.stderr, flush=True))
    try:
        stack.start()
        looks, counts = soak(stack, config.ports, given.minutes * 60, given.clients, given.seed)
        left = left_over(config.ports.metrics)
    finally:
        stack.stop()
    growth = {field: round(grown(looks, field), 4) for field in ("resident", "shared")}
    passed = not any(left.values()) and max(growth.values()) <= _GROWTH and not counts.faults and counts.num_whole > 0
    say(metric="soak_verdict", passed=passed, growth=growth, left_over=left, faults=counts.faults[:20],
        minutes=given.minutes, clients=given.clients, **counts.snapshot(), **stamp())  # fmt: skip
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
