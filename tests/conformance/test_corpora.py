"""A bounded sample of the shared corpora: nothing invalid is ever let through, and valid values can be written.

`python perf/conformance.py` runs all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from guided_grammar.conformance.case import Case, Status, Verdict
from guided_grammar.conformance.judge import Setting
from guided_grammar.conformance.rows import cases
from guided_grammar.conformance.run import run
from guided_grammar.limits import Limits

DATA = Path(__file__).parents[3] / "shared" / "data"
SAMPLES = {
    "json_schema_test_suite/draft2020-12.jsonl": 8,
    "json_schema_test_suite/draft2019-09.jsonl": 40,
    "json_schema_test_suite/draft7.jsonl": 40,
    "json_schema_test_suite/draft6.jsonl": 40,
    "json_schema_test_suite/draft4.jsonl": 25,
    "maskbench/schemas/Github_easy.jsonl": 40,
    "maskbench/schemas/Github_medium.jsonl": 60,
    "schemastore/schemastore.jsonl": 60,
    "formats/formats.jsonl": 3,
    "regex/regex.jsonl": 20,
    "gbnf/gbnf.jsonl": 4,
    "llama_cpp/gbnf_accept_reject.jsonl": 3,
    "xgrammar/ebnf.jsonl": 4,
    "xgrammar/schema.jsonl": 40,
    "bugs/BUGS.jsonl": 2,
    "tools/tools.jsonl": 40,
    "bfcl/bfcl.jsonl": 60,
}

NARROWER = {
    "optional/bignum/1": "numbers are written with at most 16 significant digits",
    "optional/format/ecmascript-regex/3": "regexes of format regex are written without named groups",
}


def sampled() -> Iterator[Case]:
    for name, every in SAMPLES.items():
        for at, case in enumerate(cases(DATA / name)):
            if at % every == 0:
                yield case


@pytest.fixture(scope="module")
def verdicts() -> list[Verdict]:
    if not DATA.is_dir():
        pytest.skip("corpus not present")
    return list(run(sampled(), Setting(Limits(schema_bytes=1 << 20)), seconds=20.0))


@pytest.mark.corpus
def test_no_invalid_instance_is_accepted(verdicts: list[Verdict]) -> None:
    assert sum(v.num_invalid for v in verdicts) > 200
    assert [(v.id, v.accepted) for v in verdicts if v.accepted] == []


@pytest.mark.corpus
def test_no_valid_instance_is_rejected(verdicts: list[Verdict]) -> None:
    assert sum(v.num_valid for v in verdicts) > 200
    assert [(v.id, v.rejected) for v in verdicts if v.rejected and v.id.partition("/")[2] not in NARROWER] == []


@pytest.mark.corpus
def test_every_case_ends_and_few_are_refused(verdicts: list[Verdict]) -> None:
    assert [(v.id, v.reason) for v in verdicts if v.status in (Status.TIMEOUT, Status.CRASHED)] == []
    assert sum(v.status is Status.REFUSED for v in verdicts) <= 0.12 * len(verdicts)


@pytest.mark.corpus
def test_grammars_and_tools_are_never_refused(verdicts: list[Verdict]) -> None:
    groups = {
        "gbnf grammars",
        "llama_cpp grammars",
        "xgrammar grammars",
        "tool parameters",
        "bfcl parameters",
        "bfcl tool lists",
    }
    assert [(v.id, v.reason) for v in verdicts if v.group in groups and v.status is Status.REFUSED] == []
