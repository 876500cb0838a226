"""One line per request, kept beside every figure made from it."""

from __future__ import annotations

import gzip
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from study.ladder import Outcome


@dataclass(frozen=True)
class Record:
    """Times in seconds. `level` is the concurrency; `transport` names the exception when no whole response came.

    per_token_s is (end to end - first token) / tokens after the first, 0 where there are none.
    """

    experiment: str
    arm: str
    level: int
    case: str
    index: int
    outcome: Outcome
    rung: str
    status: int
    finish_reason: str | None
    transport: str
    text: str
    error: str
    prompt_tokens: int
    completion_tokens: int
    ttft_s: float
    e2e_s: float
    at_s: float

    @property
    def answered(self) -> bool:
        """The server returned a completion, cut or not."""
        return self.status == 200 and not self.transport

    @property
    def complete(self) -> bool:
        """It was returned and not cut: the denominator of validity."""
        return self.answered and self.outcome is not Outcome.TRUNCATION

    @property
    def per_token_s(self) -> float:
        after = self.completion_tokens - 1
        return (self.e2e_s - self.ttft_s) / after if after > 0 else 0.0


class Results:
    """What was kept of a run, in the order in which it came."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.facts: list[dict[str, Any]] = []

    def of(self, experiment: str, **fields: Any) -> list[Record]:
        """Records of an experiment with these field values."""
        chosen = (r for r in self.records if r.experiment == experiment)
        return [r for r in chosen if all(getattr(r, k) == v for k, v in fields.items())]

    def facts_of(self, experiment: str) -> list[dict[str, Any]]:
        return [f for f in self.facts if f["experiment"] == experiment]


class Journal(Results):
    """Results that are also written, as they come, to gzipped JSON lines. One owner; closed by `close`."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._raw = path.open("wb")
        # no name and no time inside, so that equal content is an equal file
        self._file = gzip.GzipFile("", "wb", fileobj=self._raw, mtime=0)

    def add(self, record: Record) -> None:
        self.records.append(record)
        self._write({"kind": "request", **asdict(record)})

    def fact(self, experiment: str, **values: Any) -> None:
        """A figure that is no request: a table cell of an offline experiment, or a sample of the server's metrics."""
        self.facts.append({"experiment": experiment, **values})
        self._write({"kind": "fact", "experiment": experiment, **values})

    def close(self) -> None:
        self._file.close()
        self._raw.close()

    def _write(self, row: dict[str, Any]) -> None:
        self._file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")


def load(path: Path) -> Results:
    """What a closed journal holds; the same reports can be made of it."""
    results = Results()
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            if row.pop("kind") == "request":
                results.records.append(Record(**{**row, "outcome": Outcome(row["outcome"])}))
            else:
                results.facts.append(row)
    return results
