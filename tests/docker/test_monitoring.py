"""Rules, alerts and dashboard: well-formed, and about metrics that exist."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from guided_engine.metrics import STAGES
from guided_frontend.observe import Outcome
from guided_testing.deployment import DOCKER, documents, known_samples, recorded, selectors

RULES = [
    rule
    for name in ("rates.yml", "alerts.yml")
    for group in documents(DOCKER / "prometheus" / name)[0]["groups"]
    for rule in group["rules"]
]
DASHBOARD: dict[str, Any] = json.loads((DOCKER / "grafana/dashboards/guided.json").read_text())


def label(rule: dict[str, Any]) -> str:
    return str(rule.get("alert") or rule.get("record"))


def panels() -> Iterator[dict[str, Any]]:
    return (panel for panel in DASHBOARD["panels"] if panel["type"] != "row")


def queries() -> list[tuple[str, str]]:
    """Panel title and PromQL, Grafana's variables replaced by values."""
    found = []
    for panel in panels():
        for target in panel["targets"]:
            text = target["expr"].replace("$__rate_interval", "1m")
            found.append((panel["title"], re.sub(r"\$(namespace|constraint)", ".*", text)))
    return found


EXPRESSIONS = [(label(rule), rule["expr"]) for rule in RULES] + queries()


@pytest.mark.parametrize(("name", "expression"), EXPRESSIONS, ids=[name for name, _ in EXPRESSIONS])
def test_an_expression_parses_and_names_metrics_that_exist(name: str, expression: str) -> None:
    names = {selector.name for selector in selectors(expression)}
    assert names and names <= known_samples()


@pytest.mark.parametrize(("name", "expression"), EXPRESSIONS, ids=[name for name, _ in EXPRESSIONS])
def test_outcomes_are_ones_that_the_frontend_counts(name: str, expression: str) -> None:
    known = {outcome.value for outcome in Outcome}
    for _, value in re.findall(r'outcome(=~?)"([^"]*)"', expression):
        assert set(value.split("|")) <= known


def test_a_metric_that_does_not_exist_would_be_found() -> None:
    assert {s.name for s in selectors("rate(guided_steps[1m]) / 2 or sum by (a) (up)")} == {"guided_steps", "up"}
    assert "guided_steps" not in known_samples()


def test_the_four_rates_are_recorded_alerted_on_and_shown() -> None:
    alerted = " ".join(rule["expr"] for rule in RULES if "alert" in rule)
    shown = " ".join(expression for _, expression in queries())
    for rate in ("validity", "truncation", "zero_token", "transport"):
        name = f"guided:{rate}:ratio5m"
        assert name in recorded() and name in alerted and name in shown


@pytest.mark.parametrize("rule", [r for r in RULES if "alert" in r], ids=label)
def test_an_alert_has_a_severity_and_says_what_happened(rule: dict[str, Any]) -> None:
    assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert rule["annotations"]["summary"]


def test_alert_and_record_names_are_unique() -> None:
    names = [label(rule) for rule in RULES]
    assert len(names) == len(set(names))


def test_the_time_per_step_is_shown_by_all_its_stages() -> None:
    stages = {f"guided_{stage}_seconds_total" for stage in STAGES}
    shown = {s.name for title, expression in queries() if title == "Time per step" for s in selectors(expression)}
    assert shown == stages | {"guided_steps_total"}


def test_every_panel_has_its_place_and_the_provisioned_source() -> None:
    source = documents(DOCKER / "grafana/provisioning/datasources/prometheus.yaml")[0]["datasources"][0]
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken and max(x for x, _ in cells) < 24, panel["title"]
        taken |= cells
    assert {t["datasource"]["uid"] for p in panels() for t in p["targets"]} == {source["uid"]}
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))


def test_prometheus_loads_the_rules_and_scrapes_the_services_of_compose() -> None:
    config = documents(DOCKER / "prometheus/prometheus.yml")[0]
    assert {"rates.yml", "alerts.yml"} == set(config["rule_files"])
    targets = {t for job in config["scrape_configs"] for s in job["static_configs"] for t in s["targets"]}
    assert targets == {"server:8002", "frontend:9000"}
    assert {t.split(":")[0] for t in targets} <= set(documents(DOCKER / "compose.yaml")[0]["services"])


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_sees_the_alerts_fire(tmp_path: Path) -> None:
    command = ["promtool", "test", "rules", "alerts.test.yml"]
    done = subprocess.run(command, cwd=DOCKER / "prometheus", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
