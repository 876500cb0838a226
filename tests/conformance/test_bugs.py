"""Public fault reports of other engines, restated with small inputs: here each behaves as it should."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from guided_grammar.compiler import compile_spec
from guided_grammar.conformance.case import Status, Verdict
from guided_grammar.conformance.judge import Setting
from guided_grammar.conformance.rows import cases
from guided_grammar.conformance.run import run
from guided_grammar.errors import GrammarError
from guided_grammar.limits import Limits
from guided_grammar.spec import GrammarSpec, Kind
from guided_testing.ebnf import Matcher

BUGS = Path(__file__).parents[3] / "shared/data/bugs/BUGS.jsonl"
_CHECKS = [
    (row["id"], row["check"])
    for row in (map(json.loads, BUGS.read_text(encoding="utf-8").splitlines()) if BUGS.exists() else ())
    if "check" in row
]
_KINDS = {"schema": Kind.JSON_SCHEMA, "grammar": Kind.GBNF, "regex": Kind.REGEX}
_JUDGED = ("schema", "grammar", "regex", "choice")


def of_type(*types: str) -> list[Any]:
    found = [pytest.param(name, check, id=name) for name, check in _CHECKS if check["type"] in types]
    return found or [pytest.param("", {}, marks=pytest.mark.skip("corpus not present"))]


@cache
def verdicts() -> dict[str, Verdict]:
    return {v.id: v for v in run(cases(BUGS), Setting(Limits()), seconds=20.0)}


@pytest.mark.corpus
@pytest.mark.parametrize(("name", "check"), of_type(*_JUDGED))
def test_a_constraint_accepts_and_rejects_what_it_should(name: str, check: dict[str, Any]) -> None:
    verdict = verdicts()[name]
    assert (verdict.status, verdict.rejected, verdict.accepted) == (Status.ENFORCED, (), ()), verdict.reason


@pytest.mark.corpus
@pytest.mark.parametrize(("name", "check"), of_type("schema_no_crash", "grammar_no_crash"))
def test_a_constraint_that_broke_others_ends_in_time(name: str, check: dict[str, Any]) -> None:
    assert verdicts()[name].status in (Status.ENFORCED, Status.REFUSED)


@pytest.mark.corpus
@pytest.mark.parametrize(("name", "check"), of_type("must_error"))
def test_what_is_no_constraint_is_refused(name: str, check: dict[str, Any]) -> None:
    value = {"schema": check["value"]} if check["what"] == "schema" else check["value"]
    with pytest.raises(GrammarError):
        compile_spec(GrammarSpec(_KINDS[check["what"]], value))


@pytest.mark.corpus
@pytest.mark.parametrize(("name", "check"), of_type("schema_whitespace"))
def test_a_model_that_only_wants_blanks_cannot_go_on_for_ever(name: str, check: dict[str, Any]) -> None:
    grammar = Matcher(compile_spec(GrammarSpec(Kind.JSON_SCHEMA, {"schema": check["schema"]})).text)
    assert grammar.accepts('{"town": "Ulm"}')
    for place, blank in ((0, "\n"), (1, " "), (1, "\n\t"), (8, " "), (14, "  "), (15, " "), (15, "\n")):
        text = '{"town": "Ulm"}'
        assert not grammar.accepts(text[:place] + blank + text[place:])


@pytest.mark.corpus
def test_every_kind_of_check_is_walked() -> None:
    if not _CHECKS:
        pytest.skip("corpus not present")
    walked = {*_JUDGED, "schema_no_crash", "grammar_no_crash", "must_error", "schema_whitespace"}
    assert {check["type"] for _, check in _CHECKS} <= walked and len(_CHECKS) >= 40
