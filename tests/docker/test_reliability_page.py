"""Advice that the guide must carry, by its id in the acceptance list, with words that the guide says it in."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from guided_testing.deployment import ROOT, documents

DOCS = ROOT / "docs"
ADVICE = {
    "d9": "Validity is a floor",
    "d21": "may not count building its index",
    "d22": "look at the refusal field before the payload",
    "d24": "validly parsable, not high-quality",
    "d51": "left vLLM with 0.12",
    "d63": "Discard on the metadata",
    "d64": "25,000 tokens, are a place to start",
    "d94": "is a hypothesis to test",
    "d118": "A quiet parse-error dashboard is no proof",
    "d173": "raise the budget, or fail",
    "d174": "look at the raw text first",
    "d175": "send the document and the validator's message back once",
    "d176": "quote the broken rule",
    "d177": "three leave less than 0.01 %, at 15 % 0.34 %",
    "d178": "Keep the prefix stable",
    "d179": "Enums over strings",
    "d180": "gives the worst case of a bounded schema",
    "d181": "82.55 %",
    "d182": "schema or strict mode | the default",
    "d183": "with `strict: true` spelled out",
    "d184": "4 % becomes 0.006 %",
    "d185": "know the batch capacity",
    "d186": "batch extraction | rules on values, `minItems`",
    "d187": "flat schemas, small enums, generous budget",
    "d196": "`multipleOf` was refused with a 500",
    "d197": "the cure is a larger budget",
    "d198": "verify that the response echoes it",
    "d199": "two independent repeats",
    "d200": "a dozen tools never does",
    "f15": "says nothing about values",
    "f19": "Say it in the prompt too",
}
GUIDE = " ".join((DOCS / "reliability.md").read_text().split())


@pytest.mark.parametrize("item", ADVICE)
def test_the_guide_carries(item: str) -> None:
    assert ADVICE[item] in GUIDE


def test_d78_what_the_openai_subset_refuses_is_told() -> None:
    assert "`dependentSchemas`, which strict mode refuses, are enforced" in " ".join(
        (DOCS / "migrate.md").read_text().split()
    )


@pytest.mark.parametrize("path", sorted(DOCS.glob("*.md")), ids=lambda p: p.name)
def test_links_between_pages_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text()):
        assert (DOCS / target).exists(), target


@pytest.mark.parametrize("path", sorted(DOCS.glob("*.md")), ids=lambda p: p.name)
def test_files_of_the_deployment_that_the_docs_name_exist(path: Path) -> None:
    named = re.findall(r"\bdocker/[\w./-]*\w", path.read_text())
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_every_alert_is_explained() -> None:
    groups = documents(ROOT / "docker/prometheus/alerts.yml")[0]["groups"]
    alerts = {rule["alert"] for group in groups for rule in group["rules"]}
    assert set(re.findall(r"`(Guided[A-Z]\w+)`", (DOCS / "observe.md").read_text())) == alerts
