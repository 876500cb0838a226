"""`make perf`: perf_analyzer 2.51 drives the model over gRPC streaming, constrained and unconstrained in one run.

perf_analyzer comes from the `tritonclient` 2.51 wheel. Its own latency is to the last response, so TTFT and the time
between responses are computed from its profile export. One JSON line per arm and concurrency goes to stdout.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stamp import stamp

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docker" / "local"))

from stack import MODEL_NAME, Ports, Stack, StackConfig  # noqa: E402
from triton_wheel import TritonWheel  # noqa: E402

_WHEEL = "tritonclient==2.51.0"
_PROMPTS = (
    "Describe a support ticket about a late parcel.",
    "Describe a support ticket about a double charge.",
    "Describe a support ticket about a lost password.",
    "Describe a support ticket about a broken screen.",
)
_SCHEMA = {
    "type": "object",
    "properties": {
        "category": {"enum": ["billing", "shipping", "account", "hardware"]},
        "priority": {"enum": ["low", "medium", "high"]},
        "summary": {"type": "string", "minLength": 10, "maxLength": 60},
        "needs_human": {"type": "boolean"},
    },
    "required": ["category", "priority", "summary", "needs_human"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Load:
    """name: "concurrency" (requests in flight) or "request-rate" (requests per second, evenly spaced)."""

    name: str
    value: float


def say(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def fetch_analyzer(cache: Path) -> Path:
    """The perf_analyzer binary, downloaded once into `cache`."""
    binary = cache / "perf_analyzer"
    if not binary.exists():
        cache.mkdir(parents=True, exist_ok=True)
        say(f"fetching perf_analyzer ({_WHEEL})")
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(cache), _WHEEL]
        subprocess.run(command, check=True)
        with zipfile.ZipFile(next(cache.glob("tritonclient-*.whl"))) as wheel:
            member = next(n for n in wheel.namelist() if n.endswith("bin/perf_analyzer"))
            partial = binary.with_suffix(".part")
            partial.write_bytes(wheel.read(member))
        partial.chmod(0o755)
        partial.rename(binary)
    return binary


def library_folder(work: Path) -> Path:
    """perf_analyzer names two libraries that the server wheel ships under hashed names."""
    libraries = TritonWheel.find().root.parents[1] / "nvidia_pytriton.libs"
    folder = work / "lib"
    folder.mkdir(exist_ok=True)
    for name, pattern in (("libb64.so.0d", "libb64-*.so.0d"), ("libcudart.so.12", "libcudart-*.so.12*")):
        (folder / name).symlink_to(next(libraries.glob(pattern)))
    return folder


def input_data(work: Path, constrained: bool, max_tokens: int) -> Path:
    """perf_analyzer's input file for one arm; same prompts, seeds and budget in both."""
    constraint = json.dumps({"kind": "json_schema", "value": {"schema": _SCHEMA, "order": "declared"}})
    rows = []
    for seed, prompt in enumerate(_PROMPTS):
        text = f"<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n"
        sampling = json.dumps({"max_tokens": max_tokens, "temperature": 0.7, "seed": seed})
        row = {"text_input": [text], "stream": [True], "sampling_parameters": [sampling]}
        rows.append({**row, "constraint": [constraint]} if constrained else row)
    path = work / f"{'constrained' if constrained else 'free'}.json"
    path.write_text(json.dumps({"data": rows}))
    return path


def figures(export: Path) -> dict[str, float]:
    """Milliseconds and requests per second from a profile export."""
    first, between, total, begin, end = [], [], [], [], []
    for experiment in json.loads(export.read_text())["experiments"]:
        for request in experiment["requests"]:
            sent, got = request["timestamp"], request["response_timestamps"]
            if not got:
                continue
            first.append((got[0] - sent) / 1e6)
            total.append((got[-1] - sent) / 1e6)
            between += [(b - a) / 1e6 for a, b in itertools.pairwise(got)]
            begin.append(sent)
            end.append(got[-1])
    span = (max(end) - min(begin)) / 1e9
    return {
        "requests": len(total),
        "requests_per_s": round(len(total) / span, 3),
        "ttft_p50_ms": round(statistics.median(first), 1),
        "between_responses_p50_ms": round(statistics.median(between), 1) if between else 0.0,
        "latency_p50_ms": round(statistics.median(total), 1),
        "latency_max_ms": round(max(total), 1),
    }


def measure(binary: Path, work: Path, grpc: str, data: Path, load: Load, count: int) -> dict[str, float]:
    """One perf_analyzer run of `count` requests. Raises RuntimeError with its output when it fails."""
    export = work / f"{data.stem}-{load.name}-{load.value}.export.json"
    command = [
        str(binary),
        *("-m", MODEL_NAME, "-i", "grpc", "-u", grpc, "--async", "--streaming"),
        *("--input-data", str(data), f"--{load.name}-range", str(load.value)),
        *("--request-count", str(count), "--profile-export-file", str(export)),
    ]
    env = {**os.environ, "LD_LIBRARY_PATH": str(work / "lib")}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"perf_analyzer exited with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return figures(export)


@contextmanager
def server(grpc: str | None) -> Iterator[str]:
    """The gRPC address to use: the given one, or that of a stack of our own for the time of the run."""
    if grpc:
        yield grpc
        return
    config = StackConfig(ports=Ports.free())
    stack = Stack(config, say)
    try:
        stack.start()
        yield f"127.0.0.1:{config.ports.grpc}"
    finally:
        stack.stop()


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make perf", description=__doc__)
    parser.add_argument("--grpc", help="HOST:PORT of a running server; default: start one")
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 4, 8])
    parser.add_argument("--request-rate", type=float, nargs="*", default=[], help="requests per second, swept as well")
    parser.add_argument("--requests", type=int, default=16, help="requests per load and arm")
    parser.add_argument("--max-tokens", type=int, default=64)
    return parser.parse_args(arguments)


def loads(given: argparse.Namespace) -> list[Load]:
    """Concurrencies first, then rates."""
    concurrencies = [Load("concurrency", n) for n in given.concurrency]
    return concurrencies + [Load("request-rate", rate) for rate in given.request_rate]


def main(arguments: list[str]) -> int:
    given = parse(arguments)
    cache = Path(os.environ.get("GUIDED_CACHE", Path.home() / ".cache" / "triton-guided"))
    binary = fetch_analyzer(cache / "perf_analyzer-2.51")
    with tempfile.TemporaryDirectory() as folder, server(given.grpc) as grpc:
        work = Path(folder)
        library_folder(work)
        for load in loads(given):
            for arm in ("free", "constrained"):
                data = input_data(work, arm == "constrained", given.max_tokens)
                say(f"{arm}, {load.name} {load.value}, {given.requests} requests")
                row: dict[str, Any] = {"metric": "perf_analyzer", "arm": arm, load.name: load.value}
                row |= measure(binary, work, grpc, data, load, given.requests)
                print(json.dumps(row | {"max_tokens": given.max_tokens, **stamp()}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
