"""Become the wheel's tritonserver: `python docker/local/tritonserver.py --model-repository=model_repository ...`.

Every argument is tritonserver's own. Without `--http-address` and `--grpc-address` it listens on loopback.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from triton_wheel import LaunchError, TritonWheel

LOOPBACK = ["--http-address=127.0.0.1", "--grpc-address=127.0.0.1", "--metrics-address=127.0.0.1"]
FIXED = ["--disable-auto-complete-config", "--allow-gpu-metrics=false"]


def main(arguments: list[str]) -> int:
    given = {a.split("=")[0] for a in arguments}
    defaults = [a for a in LOOPBACK if a.split("=")[0] not in given]
    try:
        wheel = TritonWheel.find()
        work = Path(tempfile.gettempdir()) / f"triton-guided-{os.getuid()}"
        command, env = wheel.command(work, [*FIXED, *defaults, *arguments]), wheel.environment()
    except LaunchError as error:
        print(f"cannot start: {error}", file=sys.stderr)
        return 1
    os.execve(command[0], command, env)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
