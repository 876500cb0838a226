"""Processes below this one."""

from __future__ import annotations

import os
import signal
import time
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
    """SIGKILL; returns when the process has ended, its parent still to be told."""
    os.kill(pid, signal.SIGKILL)
    while _state(pid) not in ("Z", ""):
        time.sleep(0.005)


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""
