"""`PYTHONPATH=perf python -m isolation PART…`: JSON lines here and in perf/isolation.jsonl; `report` writes the page.

Parts run one after the other; a part that is run again replaces its rows.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from stamp import stamp

from isolation import attack, masks, report, schemas

_PERF = Path(__file__).resolve().parents[1]
_PARTS: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {
    "bystanders": lambda: attack.bystanders(attackers=1),
    "kills": lambda: attack.kills(seconds=60.0),
    "cardinality": schemas.cardinality,
    "growth": schemas.growth,
    "walks": masks.walks,
    "placement": masks.placement,
}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m isolation", description=__doc__)
    parser.add_argument("parts", nargs="+", choices=[*_PARTS, "report"])
    parser.add_argument("--rows", type=Path, default=_PERF / "isolation.jsonl")
    options = parser.parse_args(arguments)
    for name in options.parts:
        if name == "report":
            (_PERF / "isolation.md").write_text(report.page(_read(options.rows)), encoding="utf-8")
            continue
        kept, rows = [row for row in _read(options.rows) if row["run"] != name], []
        at_start = stamp()
        for row in _PARTS[name]():
            rows.append({"run": name, **row, "load": round(os.getloadavg()[0], 1), **at_start})
            print(json.dumps(rows[-1]), flush=True)
            options.rows.write_text("".join(json.dumps(each) + "\n" for each in [*kept, *rows]), encoding="utf-8")
    return 0


def _read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
