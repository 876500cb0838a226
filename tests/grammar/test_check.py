"""Pre-flight reports, by function and by command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from guided_grammar.check import check, spec_of
from guided_grammar.errors import InvalidConstraint
from guided_grammar.spec import GrammarSpec, Kind

KEYS = ["status", "keyword", "path", "reason", "worst_case_bytes", "compile_ms", "grammar_bytes"]


@pytest.mark.parametrize(
    ("spec", "worst"),
    [
        (GrammarSpec(Kind.CHOICE, ["yes", "naïve"]), 6),
        (GrammarSpec(Kind.REGEX, "[0-9]{4}-[a-zé]"), 7),
        (GrammarSpec(Kind.REGEX, "a+"), None),
        (GrammarSpec(Kind.GBNF, 'root ::= "a"{2,5} "b"?'), 6),
        (GrammarSpec(Kind.GBNF, 'root ::= "{" root? "}"'), None),
        (GrammarSpec(Kind.JSON_SCHEMA, {"schema": {"enum": ["a", True, None, "longest"]}}), 9),
        (GrammarSpec(Kind.JSON_SCHEMA, {"schema": {"type": "boolean"}}), 5),
        (GrammarSpec(Kind.JSON_SCHEMA, {"schema": {"type": "string"}}), None),
        (GrammarSpec(Kind.JSON_OBJECT), None),
    ],
)
def test_an_enforced_constraint_reports_its_longest_answer(spec: GrammarSpec, worst: int | None) -> None:
    report = check(spec)
    assert (report.status, report.worst_case_bytes) == ("enforced", worst)
    assert report.grammar_bytes > 0 and report.compile_ms > 0


def test_a_refused_constraint_reports_where_and_why() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "http://elsewhere.example/x"}}}
    report = check(GrammarSpec(Kind.JSON_SCHEMA, {"schema": schema}))
    assert (report.status, report.keyword, report.path) == ("refused", "$ref", "/properties/a")
    assert "elsewhere" in report.reason
    assert (report.worst_case_bytes, report.grammar_bytes) == (None, 0)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Kind.REGEX, "a\\n\n", "a\\n"),
        (Kind.GBNF, 'root ::= "a"\n', 'root ::= "a"'),
        (Kind.CHOICE, '["a", "b"]', ["a", "b"]),
        (Kind.JSON_SCHEMA, "true\n", {"schema": True}),
    ],
)
def test_a_file_holds_json_or_the_text_itself(kind: Kind, text: str, value: Any) -> None:
    assert spec_of(kind, text) == GrammarSpec(kind, value)


@pytest.mark.parametrize("text", ["{", "", "[" * 100_000])
def test_a_file_that_is_not_json_is_invalid(text: str) -> None:
    with pytest.raises(InvalidConstraint, match="not JSON"):
        spec_of(Kind.JSON_SCHEMA, text)


@pytest.mark.parametrize(
    ("kind", "text", "status", "code"),
    [("choice", '["a"]', "enforced", 0), ("regex", "a(?=b)", "refused", 1), ("json_schema", "{", "refused", 1)],
)
def test_the_command_prints_one_json_object(tmp_path: Path, kind: str, text: str, status: str, code: int) -> None:
    path = tmp_path / "constraint"
    path.write_text(text)
    command = [sys.executable, "-m", "guided_grammar", "check", "--kind", kind, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    report = json.loads(done.stdout)
    assert (list(report), report["status"], done.returncode) == (KEYS, status, code)


def test_the_command_reads_standard_input() -> None:
    command = [sys.executable, "-m", "guided_grammar", "check", "--kind", "gbnf", "-"]
    done = subprocess.run(command, input='root ::= "a"', capture_output=True, text=True, check=False)
    assert json.loads(done.stdout)["worst_case_bytes"] == 1
