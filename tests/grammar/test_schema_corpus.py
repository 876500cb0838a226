"""A bounded sample of the shared corpora: nothing invalid gets through, and what is valid does in canonical form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from guided_grammar.errors import GrammarError
from guided_grammar.schema import compile_schema
from guided_grammar.schema.canonical import Canonical, write
from guided_testing.ebnf import Matcher

DATA = Path(__file__).parents[3] / "shared" / "data"
FILES = [
    ("json_schema_test_suite/draft2020-12.jsonl", 9),
    ("json_schema_test_suite/draft4.jsonl", 9),
    ("maskbench/schemas/Github_easy.jsonl", 40),
    ("maskbench/schemas/Glaiveai2K.jsonl", 60),
]
STATED = {
    "draft4": "http://json-schema.org/draft-04/schema#",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}
LEFT_OUT = ("/format/", "/optional/", "/vocabulary/")
"""Groups that are judged by another reading: formats as annotations, huge numbers, a meta-schema that is not there."""


def rows(name: str, step: int) -> list[dict[str, Any]]:
    path = DATA / name
    if not path.exists():
        pytest.skip("corpus not present")
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return [row for row in found if not any(part in row["id"] for part in LEFT_OUT)][::step]


def with_draft(schema: Any, name: str) -> Any:
    uri = STATED.get(Path(name).stem)
    return {"$schema": uri, **schema} if uri and isinstance(schema, dict) else schema


@pytest.mark.corpus
@pytest.mark.parametrize(("name", "step"), FILES)
def test_a_compiled_schema_lets_through_exactly_the_valid_instances(name: str, step: int) -> None:
    wrong, num_compiled = [], 0
    for row in rows(name, step):
        schema = with_draft(row["schema"], name)
        try:
            grammar, canonical = Matcher(compile_schema(schema)), Canonical(schema)
        except GrammarError:
            continue
        num_compiled += 1
        for test in row["tests"]:
            texts = [canonical.text(test["data"])] + ([] if test["valid"] else [write(test["data"])])
            if any(grammar.accepts(text) != test["valid"] for text in texts):
                wrong.append((row["id"], test["data"]))
    assert wrong == []
    assert num_compiled >= 0.8 * len(rows(name, step))
