"""A killable Python process that runs calls for its owner: for work that can neither be interrupted nor bounded."""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import resource
import selectors
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

from guided_grammar.errors import GrammarError, error_from_dict

_HEADER = struct.Struct("<Q")
_START_SECONDS = 60.0
_OUT_OF_MEMORY = 1
_NICE, _LONG_NICE = 5, 19
_LONG_SECONDS = 0.25


class WorkerTimeout(Exception):
    """The call took longer than allowed; the process was killed."""


class WorkerDied(Exception):
    """The process ended during the call: out of memory, a crash in native code, killed from outside.

    status: as of `subprocess.Popen.returncode`, None when it never started.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status

    @property
    def out_of_memory(self) -> bool:
        """It reached its own bound; otherwise something else ended it."""
        return self.status == _OUT_OF_MEMORY


class Worker:
    """One process at a time, started when first needed and again after it was killed. Not thread-safe.

    Calls run at low priority, and at the lowest when they take long: whoever streams goes first. Not so its start and
    `trusted` calls, which others wait for.

    memory_bytes: bound of its address space, None for none. paths: folders put before its import path.
    """

    def __init__(self, memory_bytes: int | None = None, paths: Sequence[str] = ()) -> None:
        self._memory_bytes = memory_bytes
        self._paths = [*paths, str(Path(__file__).parent.parent)]
        self._process: subprocess.Popen[bytes] | None = None

    def call(self, function: str, *args: Any, seconds: float, trusted: bool = False) -> Any:
        """`module:name` called with picklable `args` in the process; its result.

        Raises the GrammarError that the call raised, RuntimeError quoting any other exception of it, WorkerTimeout,
        WorkerDied.
        """
        process = self._started()
        try:
            _send(process.stdin, (function, args, trusted))
            kind, value = _unpickle(self._read(process, time.monotonic() + seconds))
        except (BrokenPipeError, EOFError):
            self.close()
            status = process.returncode
            raise WorkerDied(f"the worker process ended with status {status} while it ran {function}", status) from None
        except BaseException:
            self.close()
            raise
        if kind == "refused":
            raise error_from_dict(value)
        if kind == "failed":
            raise RuntimeError(value)
        return value

    @property
    def is_running(self) -> bool:
        """A process is there; the next call starts one otherwise."""
        return self._process is not None and self._process.poll() is None

    def close(self) -> None:
        """Kill the process, if there is one, and reap it."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            # what a dead process has not read cannot be flushed; the pipe is closed all the same
            with contextlib.suppress(BrokenPipeError):
                if pipe is not None:
                    pipe.close()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self.is_running:
            return self._process
        self.close()
        command = [_python(), "-c", f"from {__name__} import serve; serve({self._memory_bytes})"]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # an arena per thread would take 64 MiB of the bounded address space each
            env={**os.environ, "PYTHONPATH": os.pathsep.join(self._paths), "MALLOC_ARENA_MAX": "1"},
        )
        try:
            self._read(self._process, time.monotonic() + _START_SECONDS)
        except EOFError:
            self.close()
            raise WorkerDied("the worker process did not start") from None
        return self._process

    @staticmethod
    def _read(process: subprocess.Popen[bytes], deadline: float) -> bytes:
        """One frame of the process's output."""
        assert process.stdout is not None
        data, wanted = b"", _HEADER.size
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while len(data) < wanted:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise WorkerTimeout("the call took longer than allowed")
                part = os.read(process.stdout.fileno(), min(wanted - len(data), 1 << 20))
                if not part:
                    raise EOFError
                data += part
                if len(data) == wanted == _HEADER.size:
                    wanted += _HEADER.unpack(data)[0]
        return data[_HEADER.size :]


def serve(memory_bytes: int | None) -> None:
    """The process's side: answer calls on stdin until it closes. Prints of a call go to stderr, not into frames."""
    if memory_bytes is not None:
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    inward = os.fdopen(os.dup(0), "rb")
    outward = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    _send(outward, ("ready", None))
    while True:
        header = inward.read(_HEADER.size)
        if len(header) < _HEADER.size:
            return
        function, args, trusted = _unpickle(inward.read(_HEADER.unpack(header)[0]))
        _send(outward, _answer(function, args) if trusted else _aside(function, args))


def _aside(function: str, args: tuple[Any, ...]) -> tuple[str, Any]:
    """The answer, from a thread of its own: only a thread's priority can be lowered for one call and not the next."""
    answers: list[tuple[str, Any]] = []

    def run() -> None:
        lower_priority()
        answers.append(_answer(function, args))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(_LONG_SECONDS)
    while thread.is_alive():
        _lower_others()
        thread.join(_LONG_SECONDS)
    return answers[0]


def lower_priority() -> None:
    """Of the calling thread and those that it starts: below whoever serves answers."""
    os.nice(_NICE)


def _lower_others() -> None:
    own = threading.get_native_id()
    # a thread may end while it is looked at; elsewhere than on Linux the process keeps its first priority
    with contextlib.suppress(OSError):
        for task in Path("/proc/self/task").iterdir():
            if int(task.name) != own:
                os.setpriority(os.PRIO_PROCESS, int(task.name), _LONG_NICE)


def _answer(function: str, args: tuple[Any, ...]) -> tuple[str, Any]:
    try:
        module, _, name = function.partition(":")
        call: Callable[..., Any] = getattr(importlib.import_module(module), name)
        return ("done", call(*args))
    except GrammarError as error:
        return ("refused", error.to_dict())
    except (MemoryError, SystemError):
        # at its bound of memory CPython also fails with "error return without exception set"
        os._exit(_OUT_OF_MEMORY)
    except Exception as error:
        return ("failed", f"{type(error).__name__}: {error}")


def _send(pipe: IO[bytes] | None, value: Any) -> None:
    assert pipe is not None
    data = pickle.dumps(value)
    pipe.write(_HEADER.pack(len(data)) + data)
    pipe.flush()


def _unpickle(data: bytes) -> Any:
    """Both ends are this package: the owner's calls and the answers to them."""
    return pickle.loads(data)


def _python() -> str:
    """The interpreter of this environment; an embedding program's `sys.executable` is not one."""
    candidate = Path(sys.prefix) / "bin" / f"python{sys.version_info.major}"
    return str(candidate) if candidate.exists() else sys.executable
