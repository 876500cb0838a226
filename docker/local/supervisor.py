"""Child processes that are started in order, restarted with back-off, and stopped in reverse order."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_BACKOFF_S = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
_STEADY_S = 60.0
_PR_SET_PDEATHSIG = 1


def answers(url: str, timeout_s: float = 1.0) -> bool:
    """True when `url` answers with a 2xx status."""
    try:
        with urllib.request.urlopen(url, timeout=timeout_s) as response:
            return 200 <= int(response.status) < 300
    except (urllib.error.URLError, OSError):
        return False


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def descendants(pid: int) -> list[int]:
    """Process ids below `pid`, nearest first."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(c) for c in task.read_text().split()]
        except OSError:
            continue
        for child in children:
            found += [child, *descendants(child)]
    return found


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (OSError, IndexError):
        return False


@dataclass
class Service:
    """One supervised process.

    ready_url answers 2xx once it serves. stop_s: how long a SIGTERM may take before SIGKILL.
    watch: the name of a descendant process (first 15 characters) without which the service is broken, "" for none.
    """

    name: str
    command: Sequence[str]
    env: Mapping[str, str]
    ready_url: str
    log: Path
    stop_s: float = 5.0
    watch: str = ""
    process: subprocess.Popen[bytes] | None = None
    restarts: int = 0
    _started: float = 0.0
    _retry_at: float = 0.0
    _children: tuple[int, ...] = field(default=())

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                list(self.command),
                env=dict(self.env),
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                # Ctrl-C must reach the supervisor only: it stops the services in order.
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )
        self._started, self._children = time.monotonic(), ()

    def wait_ready(self, timeout_s: float, tick: Callable[[float], None]) -> bool:
        """False when the process ended or time ran out; `tick` gets the seconds waited so far."""
        begin = time.monotonic()
        while time.monotonic() - begin < timeout_s:
            if self.process is None or self.process.poll() is not None:
                return False
            if answers(self.ready_url):
                self.note_children()
                return True
            tick(time.monotonic() - begin)
            time.sleep(0.2)
        return False

    def tail(self, lines: int) -> list[str]:
        """The last lines of its log, without the server's tables of options."""
        text = self.log.read_text(errors="replace").splitlines()
        return [line for line in text if line and line[0] not in "+|"][-lines:]

    def note_children(self) -> None:
        if self.watch and self.process is not None:
            self._children = tuple(p for p in descendants(self.process.pid) if _name(p) == self.watch[:15])

    @property
    def fault(self) -> str:
        """Why it must be restarted, "" while it is well."""
        if self.process is None:
            return "not running"
        if self.process.poll() is not None:
            return f"exited with status {self.process.returncode}"
        if any(not _alive(child) for child in self._children):
            return "lost its model process"
        return ""

    def restart_if_broken(self, report: Callable[[str], None]) -> None:
        """Kill and start again when broken, waiting longer after each failure in a row."""
        if self.watch and not self._children and not self.fault and answers(self.ready_url):
            self.note_children()
        fault, now = self.fault, time.monotonic()
        if not fault:
            if now - self._started > _STEADY_S:
                self.restarts = 0
            return
        if not self._retry_at:
            delay = _BACKOFF_S[min(self.restarts, len(_BACKOFF_S) - 1)]
            report(f"{self.name} {fault}; restarting in {delay:.0f} s")
            self._retry_at = now + delay
            self.kill()
        elif now >= self._retry_at:
            self._retry_at, self.restarts = 0.0, self.restarts + 1
            self.start()

    def stop(self) -> None:
        """SIGTERM, then SIGKILL of whatever is left of it, children included."""
        if self.process is None:
            return
        family = [self.process.pid, *descendants(self.process.pid)]
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(self.stop_s)
        _kill(family)
        self.process.wait()

    def kill(self) -> None:
        if self.process is not None:
            _kill([self.process.pid, *descendants(self.process.pid), *self._children])
            self.process.wait()


def _kill(pids: Sequence[int]) -> None:
    for pid in pids:
        if _alive(pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
