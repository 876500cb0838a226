"""The study's harness: its buckets, its generators and its report, over a scripted server."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import httpx
import jsonschema
import pytest
from study import cardinality, keywords, probe, ramp, report, summary
from study.client import Client, burst
from study.families import FAMILIES
from study.findings import findings
from study.job import Job, ask, of_families
from study.lab import Lab
from study.ladder import Outcome, climb
from study.probe import Cell
from study.profiles import PROFILES
from study.records import Journal, Record, Results, load
from study.repair import repair

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
JOB = Job("burst", "constrained", 1, "case", 0, ask("n?"), SCHEMA, lambda d: d["n"] > 0)


@pytest.mark.parametrize(
    ("finish", "text", "outcome", "rung"),
    [
        ("stop", '{"n": 1}', Outcome.OK, "rules"),
        ("tool_calls", '{"n": 1}', Outcome.OK, "rules"),
        ("length", '{"n": 1}', Outcome.TRUNCATION, "termination"),
        (None, '{"n": 1}', Outcome.TRUNCATION, "termination"),
        ("stop", '```json\n{"n": 1}```', Outcome.PARSE, "parse"),
        ("stop", '{"n": "a"}', Outcome.VIOLATION, "schema"),
        ("stop", '{"n": 0}', Outcome.SEMANTIC, "rules"),
    ],
)
def test_the_ladder_stops_at_the_first_rung_that_breaks(
    finish: str | None, text: str, outcome: Outcome, rung: str
) -> None:
    def is_valid(document: Any) -> bool:
        return bool(jsonschema.Draft202012Validator(SCHEMA).is_valid(document))

    found = climb(finish, text, is_valid, lambda d: d["n"] > 0)
    assert (found.outcome, found.rung) == (outcome, rung)


def test_rules_that_fail_on_a_document_of_another_shape_count_as_broken() -> None:
    assert climb("stop", "[]", None, lambda d: d["n"] > 0).outcome is Outcome.SEMANTIC


@pytest.mark.parametrize(
    ("cut", "repaired"),
    [
        ('{"a": 1, "b": "x', '{"a": 1, "b": "x"}'),
        ('{"a": 1, "b": "x\\', '{"a": 1, "b": "x"}'),
        ('{"a": 1, "b":', '{"a": 1}'),
        ('{"a": 1, "b"', '{"a": 1}'),
        ('{"a": 1, ', '{"a": 1}'),
        ('{"a": tr', "{}"),
        ('{"a": [1, 2', '{"a": [1, 2]}'),
        ('{"a', "{}"),
        ("{", "{}"),
        ("", None),
    ],
)
def test_the_repair_makes_a_document_of_a_prefix(cut: str, repaired: str | None) -> None:
    found = repair(cut)
    assert (found and json.loads(found)) == (repaired and json.loads(repaired))


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.name)
def test_documents_of_a_family_are_valid_and_right_and_no_prefix_of_them_parses(family: Any) -> None:
    document = family.document(random.Random(3))
    jsonschema.validate(document, family.schema)
    assert family.rules(document)
    text = json.dumps(document)
    for end in range(len(text)):
        with pytest.raises(ValueError):
            json.loads(text[:end])


@pytest.mark.parametrize("typed", [True, False])
@pytest.mark.parametrize("keyword", [*keywords.STUDY, *keywords.MORE], ids=lambda k: k.name)
def test_the_grid_tells_right_from_wrong(keyword: keywords.Keyword, typed: bool) -> None:
    validator = jsonschema.Draft202012Validator(
        keyword.schema(typed), format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
    )
    assert validator.is_valid({"value": keyword.right})
    assert not validator.is_valid({"value": keyword.wrong})


def test_the_grid_has_the_eighteen_of_the_study_and_twenty_four_more() -> None:
    assert (len(keywords.STUDY), len(keywords.MORE)) == (18, 24)


def test_cardinality_asks_for_as_many_schemas_as_its_label_says() -> None:
    jobs = cardinality.jobs("default", 40, 3)
    assert len(jobs) == 120
    assert len({json.dumps(job.schema) for job in jobs}) == 40
    assert [job.case for job in jobs[:40]] == [job.case for job in jobs[40:80]]


def served(*events: str, status: int = 200) -> httpx.Response:
    return httpx.Response(status, text="".join(f"data: {event}\n\n" for event in events))


def piece(text: str, finish: str | None = None) -> str:
    return json.dumps({"choices": [{"delta": {"content": text}, "finish_reason": finish}]})


USAGE = json.dumps({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}})
GOOD = served(piece('{"n"'), piece(": 1}"), piece("", "stop"), USAGE, "[DONE]")


def gone(_request: httpx.Request) -> httpx.Response:
    raise httpx.RemoteProtocolError("gone")


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (lambda _: GOOD, Outcome.OK),
        (lambda _: served(piece('{"n": 1'), piece("", "length"), USAGE, "[DONE]"), Outcome.TRUNCATION),
        (lambda _: served(piece('{"n": "a"}', "stop"), USAGE, "[DONE]"), Outcome.VIOLATION),
        (lambda _: served(piece('{"n": 1}', "stop"), USAGE), Outcome.TRANSPORT),
        (lambda _: served(piece('{"n"'), '{"error": {"message": "x"}}', "[DONE]"), Outcome.TRANSPORT),
        (lambda _: served("not json"), Outcome.TRANSPORT),
        (lambda _: httpx.Response(400, json={"error": {}}), Outcome.REFUSED),
        (lambda _: httpx.Response(503, json={"error": {}}), Outcome.TRANSPORT),
        (gone, Outcome.TRANSPORT),
    ],
)
def test_every_request_is_in_one_bucket(answer: Any, outcome: Outcome, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "requests.jsonl.gz")
    asyncio.run(send(answer, [JOB], journal))
    journal.close()
    assert [record.outcome for record in journal.records] == [outcome]
    assert load(tmp_path / "requests.jsonl.gz").records == journal.records


async def send(answer: Any, jobs: list[Job], journal: Journal) -> None:
    async with httpx.AsyncClient(base_url="http://test/v1", transport=httpx.MockTransport(answer)) as http:
        await burst(Client(http, "m", journal), jobs, 4)


def test_the_same_prompts_and_seeds_are_asked_of_every_arm_and_level() -> None:
    arms = [of_families(Job("burst", arm, level, "", 0, (), None), 8) for arm, level in (("a", 1), ("b", 8))]
    bodies = [[{**job.body("m"), "response_format": None} for job in jobs] for jobs in arms]
    assert bodies[0] == bodies[1]
    assert len({job.messages[0]["content"] for job in arms[0]}) == 8


@pytest.mark.parametrize(
    ("outcomes", "cell"),
    [
        ([Outcome.OK], Cell.ENFORCED),
        ([Outcome.OK, Outcome.VIOLATION], Cell.IGNORED),
        ([Outcome.REFUSED], Cell.REFUSED),
        ([Outcome.TRUNCATION], Cell.NO_VERDICT),
        ([Outcome.TRUNCATION, Outcome.OK], Cell.ENFORCED),
    ],
)
def test_one_violation_makes_a_keyword_ignored(outcomes: list[Outcome], cell: Cell, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "requests.jsonl.gz")
    asyncio.run(send(lambda _: GOOD, [JOB], journal))
    journal.close()
    assert probe.cell_of([replace(journal.records[0], outcome=outcome) for outcome in outcomes]) is cell


def test_a_report_is_made_of_whatever_ran_and_says_what_did_not(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "requests.jsonl.gz")
    asyncio.run(send(lambda _: GOOD, [JOB], journal))
    cut = served(piece('{"n"', "length"), USAGE, "[DONE]")
    asyncio.run(send(lambda _: cut, [JOB], journal))
    journal.fact(report.RUN, **report.told_of(PROFILES["ci"], "scripted", 1))
    journal.close()
    kept = load(tmp_path / "requests.jsonl.gz")
    report.write(kept, tmp_path)
    (row,) = summary.rows(kept, ramp.BURST)
    assert (row.requests, row.validity, row.truncation) == (2, 1.0, 0.5)
    told = {f.ids: f for f in findings(kept)}
    assert told["D97, D99, D107"].verdict == "same"
    assert told["D105, D106"].verdict == "not measured"
    lines = [json.loads(line) for line in (tmp_path / "summary.jsonl").read_text().splitlines()]
    assert {line["kind"] for line in lines} == {"run", "row", "finding"}
    assert "Findings: theirs and ours" in (tmp_path / "README.md").read_text()
    assert {p.name for p in tmp_path.glob("*.svg")} == {"load.svg", "repair.svg", "pace.svg", "cardinality.svg"}


@pytest.mark.parametrize(("failure", "expected"), [(0, 1), (0.04, 1.0416), (0.5, 1.75)])
def test_attempts_for_a_usable_answer_with_three_at_most(failure: float, expected: float) -> None:
    assert summary.attempts(failure) == pytest.approx(expected)


def of_arm(experiment: str, arm: str, count: int, **fields: Any) -> list[Record]:
    record = Record(
        experiment, arm, 8, "", 8, Outcome.OK, "", 200, "stop", "", "{}", "", 10, 11, ttft_s=0.1, e2e_s=1.1, at_s=0
    )
    return [replace(record, **fields)] * count


def verdict(records: list[Record], ids: str) -> str:
    results = Results()
    results.records += records
    return next(f.verdict for f in findings(results) if f.ids.startswith(ids))


@pytest.mark.parametrize(
    ("sent", "lost", "expected"),
    [
        (0, 0, "not measured"),
        (49, 0, "too few requests to tell"),
        (5249, 0, "too few requests to tell"),
        (5250, 0, "different"),
        (49, 1, "same"),
    ],
)
def test_no_loss_is_a_finding_only_over_as_many_requests_as_theirs(sent: int, lost: int, expected: str) -> None:
    whole = of_arm(ramp.SUSTAINED, "constrained", sent)
    broken = of_arm(ramp.SUSTAINED, "constrained", lost, outcome=Outcome.TRANSPORT, transport="ReadError")
    assert verdict(whole + broken, "D100") == expected


@pytest.mark.parametrize(
    ("small", "again", "expected"),
    [(2.1, 1.1, "same"), (2.1, 2.1, "different"), (1.1, 2.1, "different"), (2.1, None, "not measured")],
)
def test_a_small_cache_costs_something_only_where_it_does_against_either_run_at_the_default(
    small: float, again: float | None, expected: str
) -> None:
    ends = {cardinality.DEFAULT: 1.1, cardinality.SMALL: small, cardinality.AGAIN: again}
    records = [r for arm, end in ends.items() if end for r in of_arm(cardinality.EXPERIMENT, arm, 3, e2e_s=end)]
    assert verdict(records, "D129") == expected


@pytest.mark.parametrize(
    ("cut", "expected"),
    [
        ((0, 0), "all or none were cut, which tells nothing"),
        ((4, 4), "all or none were cut, which tells nothing"),
        ((2, 2), "same"),
        ((1, 2), "different"),
    ],
)
def test_a_budget_that_cuts_all_or_none_tells_nothing(cut: tuple[int, int], expected: str) -> None:
    levels = [
        record
        for level, count in zip((1, 8), cut, strict=True)
        for record in (
            *of_arm(ramp.TIGHT, "constrained", count, level=level, outcome=Outcome.TRUNCATION),
            *of_arm(ramp.TIGHT, "constrained", 4 - count, level=level),
        )
    ]
    assert verdict(levels, "D98") == expected


def test_the_tight_budget_asks_the_same_documents_at_each_level() -> None:
    asked: dict[int, list[Job]] = {}

    class Asked:
        profile = PROFILES["ci"]

        async def level(self, jobs: list[Job], concurrency: int) -> None:
            asked[concurrency] = jobs

    asyncio.run(ramp.tight_budget(cast(Lab, Asked())))
    assert list(asked) == list(PROFILES["ci"].levels)
    assert len({frozenset(job.messages[0]["content"] for job in jobs) for jobs in asked.values()}) == 1
    for level, jobs in asked.items():
        assert len(jobs) >= level
        assert len({job.index for job in jobs}) == len(jobs)
        assert len(jobs) % PROFILES["ci"].per_level == 0
