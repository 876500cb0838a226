"""Decides on a GPU machine whether the Triton kernels are right and as fast as promised. Exit status 0: all passed.

    python perf/gpu_check.py [--out gpu_check.jsonl] [--budget 480]     needs torch, triton and numpy; 9 minutes at most
    python perf/gpu_check.py --dry                                      every line of it on a CPU, without its figures

First correctness against the float64 reference, on the device. Then every kernel in a CUDA graph, cold (buffer sets of
more than three times the L2) and warm (one set, as after the LM head), against a floor of max(2 us, bytes / measured
copy bandwidth), against torch, and against xgrammar and FlashInfer where they can be imported. masks.npz holds the
distinct masks of all steps of three JSON documents over the Qwen and Tekken vocabularies, with how often each came.
Every figure and verdict is one JSON line; a chart goes beside them as SVG.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "kernels"), str(HERE)]
DRY = "--dry" in sys.argv
if DRY:
    os.environ["TRITON_INTERPRET"] = "1"
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")

import gpu_cases  # noqa: E402 - the interpreter must be chosen before the first kernel is imported
import gpu_correct  # noqa: E402
import gpu_report  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("gpu_check.jsonl"))
    parser.add_argument("--budget", type=float, default=480, help="seconds; what remains open then is said so")
    parser.add_argument("--dry", action="store_true", help="on the CPU, tiny shapes, no timing")
    options = parser.parse_args()
    deadline = time.monotonic() + options.budget
    with options.out.open("w") as stream:
        report = gpu_report.Report(stream, dry=options.dry)
        device = "cpu" if options.dry else "cuda"
        report.machine(device)
        gpu_correct.check(report, device)
        bench = gpu_cases.Bench(report, device)
        for cell in gpu_cases.cells(options.dry):
            if time.monotonic() > deadline - 20:
                report.open(f"from {cell} on: budget used up")
                break
            bench.run(cell)
        report.decide()
    options.out.with_suffix(".svg").write_text(report.chart())
    return 0 if report.passed else 1


if __name__ == "__main__":
    sys.exit(main())
