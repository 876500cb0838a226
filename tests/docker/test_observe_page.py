"""docs/observe.md lists every metric and outcome; a failure prints the table as it should be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from guided_engine.metrics import COUNTERS, GAUGES, HISTOGRAMS
from guided_frontend.backend import Origin
from guided_frontend.metrics import Metrics
from guided_frontend.observe import Outcome, Record
from guided_testing.deployment import ROOT

PAGE = (ROOT / "docs/observe.md").read_text()


def engine() -> dict[str, str]:
    return {**GAUGES, **COUNTERS, **{name: text for name, (text, _) in HISTOGRAMS.items()}}


def frontend() -> dict[str, str]:
    """Names as they are scraped, with the text behind # HELP."""
    lines = [line.split(" ", 3)[2:] for line in Metrics(lambda: 0).text().decode().splitlines() if "# HELP" in line]
    return dict(lines)


def table(heading: str) -> list[tuple[str, str]]:
    section = PAGE.split(f"\n### {heading}\n")[1].split("\n#")[0]
    return re.findall(r"^\| `([\w]+)` \| (.+) \|$", section, re.MULTILINE)


@pytest.mark.parametrize(("heading", "metrics"), [("Of the engine", engine()), ("Of the frontend", frontend())])
def test_every_metric_is_listed_as_the_code_describes_it(heading: str, metrics: dict[str, str]) -> None:
    if table(heading) != list(metrics.items()):
        rows = "\n".join(f"| `{name}` | {text} |" for name, text in metrics.items())
        pytest.fail(f"the table under '{heading}' should be:\n\n| metric | meaning |\n|---|---|\n{rows}")


def test_every_outcome_is_explained() -> None:
    assert set(dict(table("Outcomes"))) == {outcome.value for outcome in Outcome}


def test_every_field_of_the_log_line_is_explained(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="guided_frontend.requests"):
        Record(Origin("req_1", {}), "chat").log()
    fields = set(re.findall(r'"(\w+)": ', re.sub(r"\{[^{}]*\}", "0", caplog.messages[0][1:-1])))
    listed = re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`.*?`) \|", section("The request log"), re.MULTILINE)))
    assert set(listed) - {"error", "completions"} == fields


def section(heading: str) -> str:
    return PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]


@pytest.mark.parametrize("path", sorted((ROOT / "docs").glob("*.md")), ids=lambda p: p.name)
def test_metrics_that_the_docs_name_exist(path: Path) -> None:
    """A name ending like a metric is one; other `guided_*` names are packages and request fields."""
    named = set(re.findall(r"`(guided_\w+_(?:total|seconds|rows|choices|bytes|entries|tokens))`", path.read_text()))
    assert named <= {*engine(), *frontend()}
