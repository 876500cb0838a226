"""Run the tritonserver that the `nvidia-pytriton` wheel carries, without a container.

The wheel's Python stub needs three things that a container has and a virtual environment has not: its backend files
in one directory, the environment's `python3` first on PATH (the stub derives its prefix from it and ignores
PYTHONPATH), and the libpython of that same interpreter on the loader path.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

_TAG = f"{sys.version_info.major}.{sys.version_info.minor}"


class LaunchError(RuntimeError):
    """The server cannot be started here; the text says what is missing."""


@dataclass(frozen=True)
class TritonWheel:
    """Paths of an unpacked wheel. `root` is its `tritonserver` folder."""

    root: Path

    @staticmethod
    def find() -> TritonWheel:
        """Raises LaunchError when the wheel is not installed for this interpreter."""
        spec = find_spec("pytriton")
        if spec is None or spec.origin is None:
            raise LaunchError("nvidia-pytriton is not installed in this environment: run `make install`")
        wheel = TritonWheel(Path(spec.origin).parent / "tritonserver")
        if not wheel.stub.exists():
            raise LaunchError(f"the server wheel has no Python {_TAG} stub; use Python 3.11 or 3.12")
        return wheel

    @property
    def binary(self) -> Path:
        return self.root / "bin" / "tritonserver"

    @property
    def stub(self) -> Path:
        return self.root / "python_backend_stubs" / _TAG / "triton_python_backend_stub"

    def backend_directory(self, work: Path) -> Path:
        """Create (or refresh) the backend directory below `work` and return it."""
        backend = work / "backends" / "python"
        backend.mkdir(parents=True, exist_ok=True)
        origin = self.root / "backends" / "python"
        for source in (origin / "libtriton_python.so", origin / "triton_python_backend_utils.py", self.stub):
            link = backend / source.name
            link.unlink(missing_ok=True)
            link.symlink_to(source)
        return backend.parent

    def environment(self) -> dict[str, str]:
        """os.environ with PATH and LD_LIBRARY_PATH as the stub needs them. Raises LaunchError when it cannot load."""
        env = dict(os.environ)
        env["PATH"] = f"{Path(sys.prefix) / 'bin'}:{env.get('PATH', '')}"
        env["LD_LIBRARY_PATH"] = ":".join(p for p in (_libpython_folder(), env.get("LD_LIBRARY_PATH", "")) if p)
        # threads that spin between steps starve the senders on a small machine
        env.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        env.setdefault("GOMP_SPINCOUNT", "0")
        missing = [line.strip() for line in _ldd(self.stub, env) if "not found" in line]
        if missing:
            raise LaunchError(f"the Python stub cannot load {missing[0]}: install the shared libpython{_TAG}")
        return env

    def command(self, work: Path, arguments: list[str]) -> list[str]:
        """The full command line; `arguments` follow the backend directory."""
        return [str(self.binary), "--backend-directory", str(self.backend_directory(work)), *arguments]


def _libpython_folder() -> str:
    library = f"libpython{_TAG}.so.1.0"
    folder = sysconfig.get_config_var("LIBDIR") or ""
    multiarch = sysconfig.get_config_var("MULTIARCH") or ""
    candidates = [folder, str(Path(sys.base_prefix) / "lib"), str(Path(folder) / multiarch)]
    return next((c for c in candidates if c and (Path(c) / library).exists()), "")


def _ldd(binary: Path, env: dict[str, str]) -> list[str]:
    # A stub that cannot load makes the server hang for ever at "loading".
    return subprocess.run(
        ["ldd", str(binary)], env=env, capture_output=True, text=True, check=False
    ).stdout.splitlines()
