"""The processes of a running stack by their part in it, and what memory each has used at most."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docker" / "local"))

from stack import Ports, Stack, StackConfig
from supervisor import descendants

_WORKER = re.compile(r"worker import serve; serve\((\d+)\)")
_SAMPLE_SECONDS = 0.2


@dataclass(frozen=True)
class Member:
    """One process. part: "tritonserver", "engine", "frontend", "engine compile", "engine proof", "frontend compile".

    limit: bytes of its address space, 0 for none.
    """

    pid: int
    part: str
    limit: int = 0


@dataclass
class Peak:
    """Of one part: most resident bytes of one of its processes, its limit, how many processes were seen."""

    rss: int = 0
    limit: int = 0
    pids: set[int] = field(default_factory=set)


@dataclass(frozen=True)
class Live:
    """A stack that serves."""

    stack: Stack
    ports: Ports

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.ports.frontend}/v1"

    @property
    def metrics_url(self) -> str:
        return f"http://127.0.0.1:{self.ports.metrics}/metrics"

    def members(self) -> list[Member]:
        """Every process of it now."""
        found = []
        for service, part in ((self.stack.server, "engine"), (self.stack.frontend, "frontend")):
            if service is None or service.process is None:
                continue
            for pid in (service.process.pid, *descendants(service.process.pid)):
                member = _member(pid, part)
                if member is not None:
                    found.append(member)
        return found


@contextmanager
def live(environ: dict[str, str]) -> Iterator[Live]:
    """Our stack on free ports with these settings."""
    ports = Ports.free()
    stack = Stack(StackConfig(ports=ports, environ=environ), lambda line: None)
    try:
        stack.start()
        yield Live(stack, ports)
    finally:
        stack.stop()


@contextmanager
def watched(running: Live) -> Iterator[dict[str, Peak]]:
    """Peaks by part while the block runs."""
    peaks: dict[str, Peak] = {}
    done = threading.Event()

    def watch() -> None:
        while not done.wait(_SAMPLE_SECONDS):
            for member in running.members():
                peak = peaks.setdefault(member.part, Peak())
                peak.rss, peak.limit = max(peak.rss, resident(member.pid)), member.limit
                peak.pids.add(member.pid)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peaks
    finally:
        done.set()
        thread.join()


def resident(pid: int | str = "self") -> int:
    """Resident bytes, 0 for a process that has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmRSS:")), 0)


def _member(pid: int, owner: str) -> Member | None:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return None
    worker = _WORKER.search(command)
    if worker is not None:
        limit = int(worker.group(1))
        # the prover's bound differs from the compiler's
        return Member(pid, f"{owner} {'proof' if limit > 2 << 30 else 'compile'}", limit)
    program = Path(command.split("\0")[0]).name
    if program == "triton_python_backend_stub":
        return Member(pid, "engine")
    if program == "tritonserver":
        return Member(pid, "tritonserver")
    return Member(pid, "frontend") if "guided_frontend" in command else None
