"""A scoreboard that is run in parts comes to the same verdicts, each judged once."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from guided_grammar.conformance.case import Case, Status, Verdict
from guided_grammar.spec import GrammarSpec, Kind

ROOT = Path(__file__).parents[2]
CASES = [(at, Case(f"c{at}", "g", GrammarSpec(Kind.CHOICE, ["a"]))) for at in range(4)]
STAMP = {
    "day": "2026-01-01", "engine": "ours", "commit": "abc", "load": 0.5, "versions": {"x": "1"},
    "machine": {"cpu": "C", "cores": 2},
}  # fmt: skip


@pytest.fixture
def rows_module(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(ROOT / "perf"))
    yield
    for name in ("conformance_rows", "conformance_report"):
        sys.modules.pop(name, None)


def judged(cases: Iterator[Case]) -> Iterator[Verdict]:
    for case in cases:
        yield Verdict(case.id, case.group, Status.ENFORCED, num_valid=2, rejected=(1,), fill_us=(1.5, 30.0))


def test_a_run_goes_on_where_the_last_one_stopped(rows_module: None, tmp_path: Path) -> None:
    from conformance_rows import Arm, Retained

    rows, arm = Retained(tmp_path), Arm("ours", "words-10")
    assert not rows.extend("gbnf", arm, CASES, 9, STAMP, judged, deadline=time.monotonic() - 1)
    assert list(rows.read("gbnf", arm).verdicts) == [0]
    assert rows.extend("gbnf", arm, CASES, 9, STAMP, judged, deadline=math.inf)
    kept = rows.read("gbnf", arm)
    assert [v.id for v in kept.ordered] == ["c0", "c1", "c2", "c3"] and len(kept.stamps) == 2
    assert kept.ordered[0] == next(judged(iter([CASES[0][1]])))
    assert rows.arms("gbnf") == [arm] and rows.arms("tools") == []


def test_nothing_is_judged_twice(rows_module: None, tmp_path: Path) -> None:
    from conformance_rows import Arm, Retained

    rows, arm = Retained(tmp_path), Arm("xgrammar")
    rows.extend("gbnf", arm, CASES, 9, STAMP, judged, deadline=math.inf)
    before = rows.path("gbnf", arm).read_text()
    assert rows.extend("gbnf", arm, CASES, 9, STAMP, judged, deadline=math.inf)
    assert rows.path("gbnf", arm).read_text() == before


def test_the_report_says_how_much_of_a_corpus_was_judged(rows_module: None, tmp_path: Path) -> None:
    from conformance_report import report
    from conformance_rows import Arm, Retained

    rows = Retained(tmp_path)
    rows.extend("gbnf", Arm("ours", "words-10"), CASES[:3], 9, STAMP, judged, deadline=math.inf)
    rows.extend("gbnf", Arm("llguidance"), CASES, 4, STAMP | {"engine": "llguidance"}, judged, deadline=math.inf)
    text, accepted = report(rows)
    assert accepted == 0
    assert "| ours | words-10 | 3 of 9 | 0 | 0 | 0 | 3 of 6 | 0 of 0 | 0 / 0 / 0 | 30 / 30 / 30 |" in text
    assert "| llguidance | bytes | 4 |" in text
    assert "c1: valid rejected [1]" in text and "of commit abc" in text
