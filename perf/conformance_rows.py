"""Verdicts kept on disk, so that a scoreboard can be run in parts, stopped and gone on with."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from guided_grammar.conformance.case import Case, Status, Verdict
from guided_grammar.conformance.rows import cases

CORPORA = {
    "suite": (
        "JSON Schema Test Suite, draft 2020-12",
        ["json_schema_test_suite/draft2020-12.jsonl"],
    ),
    "drafts": (
        "JSON Schema Test Suite, drafts 4 to 2019-09",
        [f"json_schema_test_suite/draft{draft}.jsonl" for draft in ("4", "6", "7", "2019-09")],
    ),
    "maskbench": ("MaskBench", ["maskbench/schemas/*.jsonl", "maskbench/compile_only.jsonl"]),
    "schemastore": ("SchemaStore", ["schemastore/schemastore.jsonl"]),
    "formats": ("Formats", ["formats/formats.jsonl"]),
    "regex": ("Regular expressions", ["regex/regex.jsonl", "xgrammar/regex.jsonl"]),
    "gbnf": ("GBNF", ["gbnf/gbnf.jsonl", "llama_cpp/gbnf_accept_reject.jsonl", "xgrammar/ebnf.jsonl"]),
    "engines": (
        "Schemas of other engines' tests",
        ["xgrammar/schema.jsonl", "llama_cpp/schema_accept_reject.jsonl", "bugs/BUGS.jsonl"],
    ),
    "tools": ("Tools", ["tools/tools.jsonl", "bfcl/bfcl.jsonl"]),
}
"""By the name that the command line knows: title, and patterns of files under the data folder."""


@dataclass(frozen=True)
class Arm:
    """What judges a corpus. vocabulary: "bytes", or the name of a tokenizer's folder."""

    engine: str
    vocabulary: str = "bytes"


@dataclass(frozen=True)
class Kept:
    """What is on disk of one corpus and arm. verdicts: by the place of their case in the corpus, of `total` cases.

    stamps: what the runs that wrote them said of themselves.
    """

    arm: Arm
    total: int
    stamps: tuple[dict[str, Any], ...]
    verdicts: dict[int, Verdict]

    @property
    def ordered(self) -> list[Verdict]:
        return [self.verdicts[at] for at in sorted(self.verdicts)]


class Retained:
    """A folder with one JSON-lines file for each corpus and arm: a stamp for each run, and a line for each verdict."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, corpus: str, arm: Arm) -> Path:
        return self._folder / f"{corpus}--{arm.engine}--{arm.vocabulary}.jsonl"

    def arms(self, corpus: str) -> list[Arm]:
        """Those that have rows of `corpus`."""
        return [Arm(*path.stem.split("--")[1:]) for path in sorted(self._folder.glob(f"{corpus}--*.jsonl"))]

    def read(self, corpus: str, arm: Arm) -> Kept:
        """Empty where nothing was kept."""
        path = self.path(corpus, arm)
        stamps, verdicts, total = [], {}, 0
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            row = json.loads(line)
            if "stamp" in row:
                stamps.append(row["stamp"])
                total = row["total"]
            else:
                verdicts[row["at"]] = _verdict(row)
        return Kept(arm, total, tuple(stamps), verdicts)

    def extend(
        self,
        corpus: str,
        arm: Arm,
        selected: Sequence[tuple[int, Case]],
        total: int,
        stamp: dict[str, Any],
        judge: Callable[[Iterator[Case]], Iterator[Verdict]],
        deadline: float,
    ) -> bool:
        """Judge what has no verdict yet, until `deadline` (`time.monotonic`); whether all have one now."""
        known = self.read(corpus, arm).verdicts
        wanted = [(at, case) for at, case in selected if at not in known]
        if not wanted:
            return True
        with self.path(corpus, arm).open("a", encoding="utf-8") as out:
            out.write(json.dumps({"stamp": stamp, "total": total}) + "\n")
            verdicts = judge(case for _, case in wanted)
            for (at, _), verdict in zip(wanted, verdicts, strict=False):
                out.write(json.dumps({"at": at, **_row(verdict)}, ensure_ascii=False) + "\n")
                out.flush()
                if time.monotonic() > deadline:
                    return at == wanted[-1][0]
        return True


def selected_cases(data: Path, corpus: str, every: int) -> tuple[list[tuple[int, Case]], int]:
    """One case in `every` with its place, and how many cases the corpus has."""
    _, patterns = CORPORA[corpus]
    everything = [case for pattern in patterns for path in sorted(data.glob(pattern)) for case in cases(path)]
    return list(islice(enumerate(everything), 0, None, every)), len(everything)


def _row(verdict: Verdict) -> dict[str, Any]:
    row = asdict(verdict)
    return row | {"status": verdict.status.value, "fill_us": [round(us, 1) for us in verdict.fill_us]}


def _verdict(row: dict[str, Any]) -> Verdict:
    fields: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
    del fields["at"]
    return Verdict(**{**fields, "status": Status(row["status"])})
