"""The script for a GPU machine, run dry: every line but the timing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "perf" / "gpu_check.py"


def test_a_dry_run_passes_every_check_of_correctness_and_leaves_every_target_open(tmp_path: Path) -> None:
    out = tmp_path / "check.jsonl"
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--dry", "--out", str(out)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    records = [json.loads(line) for line in out.read_text().splitlines()]
    verdicts = [record["pass"] for record in records if "pass" in record]
    assert len(verdicts) == 15 and all(verdicts)
    assert sum("open" in record for record in records) == 13
    assert {record["name"] for record in records if "name" in record} >= {"rows", "rows all", "apply", "ids"}
    assert out.with_suffix(".svg").read_text().count("<rect") == sum("name" in record for record in records)
