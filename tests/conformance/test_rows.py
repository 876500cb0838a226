"""Rows of every corpus format become cases, and cases become verdicts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from guided_grammar.conformance.case import Case, Instance, Status, Verdict
from guided_grammar.conformance.judge import Setting, judge
from guided_grammar.conformance.rows import cases
from guided_grammar.conformance.run import run
from guided_grammar.conformance.scoreboard import faults, refusals, score, scores, slowest, table, to_json
from guided_grammar.limits import Limits
from guided_grammar.spec import GrammarSpec, Kind

SETTING = Setting(Limits())


def read(folder: Path, name: str, *rows: dict[str, Any]) -> list[Case]:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return list(cases(path))


def test_schema_rows_keep_values_and_are_dated_by_their_file(tmp_path: Path) -> None:
    tests = [
        {"data": 1, "valid": True},
        {"data": "x", "valid": False},
        {"data": "\ud800", "valid": True},
        {"data": "y", "valid": True, "description": "invalid x string is only an annotation by default"},
    ]
    row = {"id": "a", "keyword": "type", "schema": {"type": "integer"}, "tests": tests}
    (case,) = read(tmp_path, "draft4.jsonl", row)
    assert case.spec.value["schema"]["$schema"] == "http://json-schema.org/draft-04/schema#"
    assert (case.group, case.instances) == ("type", (Instance(True, value=1), Instance(False, value="x")))


def test_each_pattern_row_is_a_whole_and_a_search(tmp_path: Path) -> None:
    row = {"id": "p", "pattern": "b", "cases": [{"s": "abc", "search": True, "full": False}]}
    whole, found = read(tmp_path, "regex.jsonl", row)
    assert (whole.spec.kind, whole.instances) == (Kind.REGEX, (Instance(False, text="abc"),))
    assert (found.spec.kind, found.instances) == (Kind.JSON_SCHEMA, (Instance(True, value="abc"),))


@pytest.mark.parametrize(
    ("row", "kinds"),
    [
        ({"format": "date", "valid": ["2026-01-01"], "invalid": ["x"]}, ["json_schema"]),
        ({"id": "g", "grammar": 'root ::= "a"', "root": "root", "accept": ["a"], "reject": []}, ["gbnf"]),
        ({"id": "g", "grammar": 'root ::= Regex("a")', "root": "root", "accept": ["a"], "reject": []}, []),
        ({"id": "g", "grammar": "root ::= <[1]>", "accept": [], "reject": [], "needs_token_ids": True}, []),
        ({"id": "t", "parameters": {"type": "object"}}, ["json_schema"]),
        ({"id": "b", "check": {"type": "choice", "choices": ["a"], "reject": ["b"]}}, ["choice"]),
        ({"id": "b", "check": {"type": "regex", "pattern": "a", "accept": ["a"], "reject": ["b"]}}, ["regex"]),
        ({"id": "b", "check": {"type": "must_error", "what": "regex", "value": "("}}, []),
        (
            {"id": "m", "messages": [], "tools": [{"type": "function", "function": {"name": "f"}}]},
            ["json_schema", "tools"],
        ),
        ({"id": "?"}, []),
    ],
)
def test_other_rows_are_told_by_their_keys(tmp_path: Path, row: dict[str, Any], kinds: list[str]) -> None:
    assert [case.spec.kind.value for case in read(tmp_path, "xgrammar/rows.jsonl", row)] == kinds


def test_recorded_texts_count_where_a_validator_agrees(tmp_path: Path) -> None:
    row = {
        "id": "s",
        "schema": {"type": "integer"},
        "accept": ["1", '"not one"'],
        "reject": ["[]", "2", "{not json"],
    }
    (case,) = read(tmp_path, "xgrammar/schema.jsonl", row)
    assert case.instances == (Instance(True, value=1), Instance(False, value=[]), Instance(False, text="{not json"))


def test_a_case_is_judged_by_every_text_of_its_instances() -> None:
    spec = GrammarSpec(Kind.JSON_SCHEMA, {"schema": {"properties": {"b": {"type": "integer"}, "a": {}}}})
    values = [(True, {"a": 1.0, "b": 2.0}), (False, {"b": "x"}), (True, {"b": "x"}), (False, {"a": 1})]
    verdict = judge(Case("c", "g", spec, tuple(Instance(v, value=x) for v, x in values)), SETTING)
    assert (verdict.status, verdict.rejected, verdict.accepted) == (Status.ENFORCED, (2,), (3,))
    assert (verdict.num_valid, verdict.num_invalid) == (2, 2)
    assert verdict.fill_us and verdict.compile_ms > 0 and verdict.grammar_bytes > 0


def test_a_refused_case_says_why() -> None:
    verdict = judge(Case("c", "g", GrammarSpec(Kind.GBNF, "root ::= x")), SETTING)
    assert (verdict.status, verdict.keyword) == (Status.REFUSED, "gbnf")
    assert '"x" is not defined' in verdict.reason


EMPTY = GrammarSpec(Kind.JSON_SCHEMA, {"schema": {"allOf": [{"type": "string"}, {"type": "integer"}]}})


@pytest.mark.parametrize(("valid", "status"), [(False, Status.UNSATISFIABLE), (True, Status.REFUSED)])
def test_unsatisfiable_counts_apart_where_the_corpus_knows_nothing_valid(valid: bool, status: Status) -> None:
    assert judge(Case("c", "g", EMPTY, (Instance(valid, value=1),)), SETTING).status is status


DRAFT_4 = "http://json-schema.org/draft-04/schema#"


@pytest.mark.parametrize(("draft", "accepted"), [(DRAFT_4, ()), ("http://json-schema.org/draft-06/schema#", (0,))])
def test_only_to_draft_4_is_a_whole_float_another_value_than_the_integer(draft: str, accepted: tuple[int, ...]) -> None:
    schema = {"$schema": draft, "type": "object", "properties": {"a": {"type": "integer"}}}
    case = Case("c", "g", GrammarSpec(Kind.JSON_SCHEMA, {"schema": schema}), (Instance(False, value={"a": 1.0}),))
    assert judge(case, SETTING).accepted == accepted


def test_processor_time_bounds_a_case_and_not_the_clock() -> None:
    endless = Limits(steps=10**12, automaton_bytes=10**12)
    slow = Case("slow", "g", GrammarSpec(Kind.REGEX, "(a|b)*a(a|b){24}"))
    (verdict,) = run([slow], Setting(endless), seconds=1.0)
    assert (verdict.status, verdict.reason) == (Status.TIMEOUT, "no verdict within 1 s of processor time")


def test_a_case_over_its_time_gets_a_verdict_and_the_next_ones_go_on() -> None:
    endless = Limits(steps=10**12, automaton_bytes=10**12)
    todo = [
        Case("slow", "g", GrammarSpec(Kind.REGEX, "(a|b)*a(a|b){24}")),
        Case("ok", "g", GrammarSpec(Kind.CHOICE, ["a"])),
    ]
    assert [(v.id, v.status) for v in run(todo, Setting(endless), seconds=3.0)] == [
        ("slow", Status.TIMEOUT),
        ("ok", Status.ENFORCED),
    ]


VERDICTS = [
    Verdict(
        "a", "one", Status.ENFORCED, num_valid=2, num_invalid=1, rejected=(0,), compile_ms=1, mask_ms=2, fill_us=(1, 9)
    ),
    Verdict("b", "two", Status.REFUSED, "too | big", "pattern", num_valid=5),
    Verdict(
        "c", "one", Status.ENFORCED, num_valid=1, num_invalid=3, accepted=(1, 2), compile_ms=5, mask_ms=5, fill_us=(3,)
    ),
    Verdict("d", "two", Status.TIMEOUT, "no verdict"),
]


def test_scores_count_instances_of_enforced_cases_only() -> None:
    one, two, total = scores(VERDICTS)
    assert (one.cases, one.enforced, one.valid, one.rejected, one.invalid, one.accepted) == (2, 2, 3, 1, 4, 2)
    assert (two.refused, two.failed, two.valid) == (1, 1, 0)
    assert (total.compile_ms, total.fill_us) == ((10, 10, 10), (3, 9, 9))
    assert score("none", []).fill_us == (0.0, 0.0, 0.0)


def test_the_reports_name_what_is_wrong() -> None:
    assert table(scores(VERDICTS)).splitlines()[2].startswith("| one | 2 | 2 | 0 | 0 | 0 | 3 | 1 | 4 | 2 |")
    assert refusals(VERDICTS) == "| 1 | pattern: too \\| big |"
    assert faults(VERDICTS) == ["c: invalid accepted [1, 2]", "a: valid rejected [0]", "d: timeout no verdict"]
    assert slowest(VERDICTS, compile_ms=3, fill_us=5) == ["c: compile 10 ms", "a: mask 0.0 ms"]
    assert json.loads(json.dumps(to_json(VERDICTS)))["scores"][-1]["accepted"] == 2
