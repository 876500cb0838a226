"""The tables of docs/configure.md list every setting with its default; a failure prints the tables as they should be."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from guided_testing.deployment import ROOT, documents, engine_variables, frontend_variables

PAGE = ROOT / "docs/configure.md"
LIMIT = "GUIDED_LIMIT_"


def shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def settings(heading: str) -> dict[str, str]:
    """Variable to default, in the order of the code."""
    found = engine_variables() if heading == "Engine" else frontend_variables()
    wanted = {n: v for n, v in found.items() if heading == "Engine" or n.startswith(LIMIT) is (heading == "Limits")}
    return {name: shown(value) for name, value in wanted.items()}


def table(heading: str) -> dict[str, tuple[str, str]]:
    """Variable to (default, meaning) as the page has them."""
    section = PAGE.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(GUIDED_\w+)` \| (?:`([^`]*)`|–) \| (.+) \|$", section, re.MULTILINE)
    return {name: (default, meaning) for name, default, meaning in rows}


def as_markdown(heading: str) -> str:
    known = table(heading)
    rows = []
    for name, default in settings(heading).items():
        cell = f"`{default}`" if default else "–"
        rows.append(f"| `{name}` | {cell} | {known.get(name, ('', 'MEANING MISSING'))[1]} |")
    return "\n".join(["| variable | default | meaning |", "|---|---|---|", *rows])


@pytest.mark.parametrize("heading", ["Engine", "Frontend", "Limits"])
def test_the_page_lists_every_setting_with_its_default(heading: str) -> None:
    listed = [(name, default) for name, (default, _) in table(heading).items()]
    if listed != list(settings(heading).items()):
        pytest.fail(f"the table under '{heading}' of {PAGE.name} should be:\n\n{as_markdown(heading)}")


def test_the_model_configuration_sets_every_parameter_to_its_default() -> None:
    text = (ROOT / "model_repository/guided_llm/config.pbtxt").read_text()
    listed = re.findall(r'key: "(\w+)", value: \{ string_value: "([^"]*)"', text)
    assert {f"GUIDED_{key.upper()}": value for key, value in listed} == settings("Engine")


@pytest.mark.parametrize("path", sorted((ROOT / "docs").glob("*.md")), ids=lambda p: p.name)
def test_variables_that_the_docs_name_exist(path: Path) -> None:
    known = {*engine_variables(), *frontend_variables(), "GUIDED_CACHE", "GUIDED_HTTP_PORT", "GUIDED_GRPC_PORT"}
    known |= {"GUIDED_METRICS_PORT"}
    assert set(re.findall(r"\bGUIDED_[A-Z_]*[A-Z]\b", path.read_text())) <= known


def test_values_of_the_chart_that_the_docs_name_exist() -> None:
    values = documents(ROOT / "docker/kubernetes/chart/values.yaml")[0]
    for path in (ROOT / "docs").glob("*.md"):
        for name in re.findall(r"--set ([a-zA-Z.]+)=", path.read_text()):
            node = values
            for part in name.split("."):
                assert isinstance(node, dict) and (part in node or node == {}), f"{path.name}: {name}"
                node = node.get(part, {})
