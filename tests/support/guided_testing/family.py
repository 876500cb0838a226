"""Processes below this one."""

from __future__ import annotations

import os
from pathlib import Path


def children(pid: int | None = None) -> list[int]:
    """Processes that `pid`, or this one, has started, oldest first."""
    tasks = Path(f"/proc/{pid or os.getpid()}/task").glob("*/children")
    return sorted(int(child) for task in tasks for child in task.read_text().split())


def num_threads(pid: int) -> int:
    """0 for a process that has ended."""
    try:
        return len(list(Path(f"/proc/{pid}/task").iterdir()))
    except OSError:
        return 0
