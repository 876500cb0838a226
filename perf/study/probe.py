"""The conformance probe: is a keyword enforced, refused, or accepted and ignored? With `type` beside it and without."""

from __future__ import annotations

import json
from collections.abc import Callable
from enum import StrEnum

from guided_grammar.conformance.case import Case, Instance, Status, Verdict
from guided_grammar.spec import GrammarSpec, Kind

from study.job import Job, ask
from study.keywords import Keyword, grid
from study.lab import Lab
from study.ladder import Outcome
from study.records import Journal, Record

EXPERIMENT = "probe"
_CONCURRENCY = 8
_BUDGET = 64


class Cell(StrEnum):
    """IGNORED is what must not be: accepted, and then not enforced. No verdict: no attempt came to an end."""

    ENFORCED = "enforced"
    REFUSED = "refused"
    IGNORED = "ignored"
    NARROWED = "valid value rejected"
    NO_VERDICT = "no verdict"


async def live(lab: Lab) -> None:
    """Prompts that demand the violation, at temperature 1: with the schema as a constraint, and as a prompt only."""
    for arm in ("ours", "prompt_only"):
        jobs = [
            _job(arm, keyword, typed, at * 1000 + trial)
            for at, (keyword, typed) in enumerate(grid())
            for trial in range(lab.profile.trials)
        ]
        await lab.level(jobs, _CONCURRENCY)
        for keyword, typed in grid():
            records = lab.journal.of(EXPERIMENT, arm=arm, case=_case(keyword, typed))
            cut = sum(r.outcome is Outcome.TRUNCATION for r in records)
            _tell(lab.journal, arm, keyword, typed, cell_of(records), trials=len(records), cut=cut)


def offline(journal: Journal) -> None:
    """xgrammar's own converter and llguidance: does the matcher let the violation through? No sampling involved."""
    from rivals import llguidance_, xgrammar_

    for arm, judge in (("xgrammar converter", xgrammar_), ("llguidance", llguidance_)):
        for keyword, typed in grid():
            _tell(journal, arm, keyword, typed, _judged(judge, keyword, typed), trials=0, cut=0)


def cell_of(records: list[Record]) -> Cell:
    """What the attempts at one schema show: one violation is enough."""
    outcomes = {record.outcome for record in records}
    if Outcome.VIOLATION in outcomes:
        return Cell.IGNORED
    if Outcome.REFUSED in outcomes:
        return Cell.REFUSED
    return Cell.ENFORCED if outcomes & {Outcome.OK, Outcome.SEMANTIC} else Cell.NO_VERDICT


def _judged(judge: Callable[[Case], Verdict], keyword: Keyword, typed: bool) -> Cell:
    schema = keyword.schema(typed)
    instances = (Instance(True, value={"value": keyword.right}), Instance(False, value={"value": keyword.wrong}))
    verdict = judge(Case("", "", GrammarSpec(Kind.JSON_SCHEMA, {"schema": schema}), instances))
    if verdict.status is not Status.ENFORCED:
        return Cell.REFUSED
    if verdict.accepted:
        return Cell.IGNORED
    return Cell.NARROWED if verdict.rejected else Cell.ENFORCED


def _job(arm: str, keyword: Keyword, typed: bool, index: int) -> Job:
    demanded = json.dumps({"value": keyword.wrong})
    prompt = f"Answer with exactly this JSON and nothing else: {demanded}"
    schema = keyword.schema(typed)
    constrained = arm == "ours"
    case = _case(keyword, typed)
    return Job(EXPERIMENT, arm, _CONCURRENCY, case, index, ask(prompt), schema, None, constrained, _BUDGET, 1.0)


def _case(keyword: Keyword, typed: bool) -> str:
    return keyword.name if typed else f"{keyword.name} (untyped)"


def _tell(journal: Journal, arm: str, keyword: Keyword, typed: bool, cell: Cell, trials: int, cut: int) -> None:
    journal.fact(EXPERIMENT, arm=arm, keyword=keyword.name, typed=typed, cell=cell.value, trials=trials, cut=cut)
