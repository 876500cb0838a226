"""Processes below this one."""

from __future__ import annotations

import os
import signal
from pathlib import Path


def children(pid: int | None = None) -> list[int]:
    """Processes that `pid`, or this one, has started, oldest first; process ids start anew at some point."""
    tasks = Path(f"/proc/{pid or os.getpid()}/task").glob("*/children")
    return sorted((int(child) for task in tasks for child in task.read_text().split()), key=_started)


def _started(pid: int) -> int:
    """In clock ticks since boot."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except OSError:
        return 0


def num_threads(pid: int) -> int:
    """0 for a process that has ended."""
    try:
        return len(list(Path(f"/proc/{pid}/task").iterdir()))
    except OSError:
        return 0


def kill(pid: int) -> None:
    """SIGKILL to a child; returns when all of its threads have ended and it waits to be reaped."""
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
