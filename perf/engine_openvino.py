"""The engine beside OpenVINO GenAI: the same GGUF, prompts and schemas, in turns, prompts included.

    python perf/engine_openvino.py --peer PYTHON [--rows 1,8,32] [--rounds 3] [--threads 2] [--only schema|free]

PYTHON is of an environment that has openvino-genai. One JSON object per line. Both engines decode greedily in this
many threads, one after the other, `rows` requests under way at a time; ours as shipped, with forced text, but in one
process and without transport, as theirs. ratio: ours over theirs in requests per second, of wall time and of processor
time. Documents that validate are counted for both; their lengths differ, since theirs may hold blanks.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from bench_engine import MAX_TOKENS, say
from engine_cases import Case, constrained, free, is_valid
from engine_rig import Rig
from guided_engine.config import EngineConfig
from guided_engine.loading import load
from guided_engine.weights import embedded_gguf
from stamp import stamp

PEER = Path(__file__).with_name("openvino_peer.py")


@dataclass(frozen=True)
class Batch:
    """What an engine made of a batch, and in how many seconds."""

    seconds: float
    cpu_seconds: float
    tokens: int
    texts: list[str]


class Peer:
    """The other engine, in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, cases: Sequence[Case], rows: int) -> Batch:
        """Every case generates at most as many tokens as the first may."""
        schemas = [case.spec.value["schema"] if case.spec else None for case in cases]
        prompts = [case.prompt for case in cases]
        batch = {"prompts": prompts, "schemas": schemas, "max_tokens": cases[0].max_tokens, "rows": rows}
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(batch) + "\n")
        self._process.stdin.flush()
        return Batch(**json.loads(self._process.stdout.readline()))


@contextmanager
def started(python: str, model: Path, threads: int) -> Iterator[Peer]:
    command = [python, str(PEER), str(model), str(threads)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Peer(process)
        finally:
            process.kill()


def ours(rig: Rig, cases: Sequence[Case], rows: int) -> Batch:
    begin, cpu = time.perf_counter(), time.process_time()
    run = rig.run(cases, rows, jump_forward=True)
    seconds, cpu_seconds = time.perf_counter() - begin, time.process_time() - cpu
    return Batch(seconds, cpu_seconds, run.tokens, [ear.text for ear in run.ears])


def compare(rig: Rig, peer: Peer, rows: int, rounds: int, arm: str) -> None:
    """`rounds` pairs; the medians, each with the range of the pairs."""
    asked = constrained(rows, MAX_TOKENS)
    cases = asked if arm == "schema" else free(asked, [64] * len(asked))
    pairs = [(ours(rig, cases, rows), peer.run(cases, rows)) for _ in range(rounds)]
    told: dict[str, Any] = {"arm": arm, "batch": rows, "requests": len(cases), "rounds": rounds}
    for clock in ("seconds", "cpu_seconds"):
        ratios = [getattr(theirs, clock) / getattr(mine, clock) for mine, theirs in pairs]
        name = "ratio" if clock == "seconds" else "cpu_ratio"
        told |= {name: round(statistics.median(ratios), 3), f"{name}_low": round(min(ratios), 3),
                 f"{name}_high": round(max(ratios), 3)}  # fmt: skip
    for name, batches in zip(("engine", "openvino"), zip(*pairs, strict=True), strict=True):
        told |= _side(name, asked, batches, arm)
    say("engine_over_openvino_requests", **told)


def _side(name: str, asked: Sequence[Case], batches: Sequence[Batch], arm: str) -> dict[str, Any]:
    seconds = statistics.median(batch.seconds for batch in batches)
    told = {f"{name}_requests_per_second": round(len(asked) / seconds, 3), f"{name}_tokens": batches[-1].tokens}
    if arm == "schema":
        pairs = zip(asked, batches[-1].texts, strict=True)
        told[f"{name}_valid"] = sum(is_valid(case, text) for case, text in pairs)
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", required=True, help="python of an environment that has openvino-genai")
    parser.add_argument("--model", type=Path, help="GGUF file; default: that of the embedded model")
    parser.add_argument("--rows", default="1,8,32")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", choices=("schema", "free"))
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    widths = [int(r) for r in args.rows.split(",")]
    config = EngineConfig(max_rows=max(widths), max_model_len=1024)
    loaded = load(config)
    rig = Rig(loaded, config, "wall")
    asked = subprocess.check_output([args.peer, "-c", "import openvino_genai as g; print(g.__version__)"], text=True)
    say(
        "run", model=loaded.path, dtype=str(loaded.dtype), threads=args.threads, openvino_genai=asked.strip(), **stamp()
    )
    with started(args.peer, args.model or embedded_gguf(), args.threads) as peer:
        warm = constrained(2, 8)
        ours(rig, warm, 2)
        peer.run(warm, 2)
        for arm in ("schema", "free") if args.only is None else (args.only,):
            for rows in widths:
                compare(rig, peer, rows, args.rounds, arm)


if __name__ == "__main__":
    main()
