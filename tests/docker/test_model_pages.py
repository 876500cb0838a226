"""docs/any-model.md and docs/migrate.md say what the tables of formats and fields say."""

from __future__ import annotations

import re

import pytest
from guided_frontend.schemas import ChatRequest, CompletionRequest, Structured
from guided_grammar.formats import FORMATS, ToolFormat
from guided_testing.deployment import ROOT

DOCS = ROOT / "docs"
FIELDS = {field.alias or name for kind in (ChatRequest, CompletionRequest) for name, field in kind.model_fields.items()}
STRUCTURED = {field.alias or name for name, field in Structured.model_fields.items()}


def row(name: str, family: ToolFormat) -> str:
    whole = "°" if family.has_calls and not family.trigger else ""
    style = family.style.value if family.has_calls else "no calls"
    opener = family.reasoning.open.strip().replace("|", "\\|") if family.reasoning else ""
    return f"| `{name}`{whole} | {style} | {family.models} | {f'`{opener}`' if opener else '–'} |"


def test_p102_the_page_lists_every_tool_format() -> None:
    section = (DOCS / "any-model.md").read_text().split("\n## Tool formats\n")[1]
    listed = [line for line in section.splitlines() if line.startswith("| `")]
    wanted = [row(name, family) for name, family in FORMATS.items()]
    if listed != wanted:
        pytest.fail("the table of formats should be:\n\n" + "\n".join(wanted))


def moves() -> list[tuple[str, str]]:
    """Field of another server, and what becomes of it here."""
    text = (DOCS / "migrate.md").read_text()
    return re.findall(r"^\| `([a-z_.]+)` \| (same|refused|no effect|`[\w.]+`)", text, re.MULTILINE)


@pytest.mark.parametrize(("field", "here"), moves())
def test_the_migration_tables_say_what_becomes_of_a_field(field: str, here: str) -> None:
    name, _, part = field.partition(".")
    if here == "refused":
        assert (part not in STRUCTURED) if part else (name not in FIELDS)
    elif here in ("same", "no effect"):
        assert name in FIELDS
    else:
        assert here.strip("`") in FIELDS


def test_the_migration_tables_are_read() -> None:
    assert len(moves()) > 30
