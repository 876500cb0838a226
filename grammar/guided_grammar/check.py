"""Pre-flight: would this constraint be enforced, how long can its answers get, what does it cost?"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from guided_grammar.compiler import compile_spec, rules_of
from guided_grammar.errors import GrammarError, InvalidConstraint
from guided_grammar.limits import DEFAULT_LIMITS, Limits
from guided_grammar.spec import GrammarSpec, Kind
from guided_grammar.worst_case import longest

CHECKED_KINDS = (Kind.JSON_SCHEMA, Kind.REGEX, Kind.GBNF, Kind.CHOICE)


@dataclass(frozen=True)
class Report:
    """status: "enforced" or "refused"; keyword, path and reason say why not.

    worst_case_bytes: UTF-8 length of the longest answer, an upper bound of its tokens; None is unbounded or recursive.
    compile_ms, grammar_bytes: our compile, and the grammar text it came to; 0 bytes when refused.
    """

    status: str
    keyword: str
    path: str
    reason: str
    worst_case_bytes: int | None
    compile_ms: float
    grammar_bytes: int


def check(spec: GrammarSpec, limits: Limits = DEFAULT_LIMITS) -> Report:
    """Compile `spec` and report; refusals are reports, not errors."""
    started = time.perf_counter()
    try:
        compiled = compile_spec(spec, limits)
    except GrammarError as error:
        elapsed = _milliseconds(started)
        return Report("refused", error.keyword, error.path, error.reason, None, elapsed, 0)
    elapsed = _milliseconds(started)
    size = len(compiled.text.encode())
    return Report("enforced", "", "", "", longest(*rules_of(spec, limits)), elapsed, size)


def spec_of(kind: Kind, text: str) -> GrammarSpec:
    """The constraint that a file holds: JSON for a schema or a list of choices, else the text less its last newline.

    Raises InvalidConstraint when the JSON is malformed.
    """
    if kind not in (Kind.JSON_SCHEMA, Kind.CHOICE):
        return GrammarSpec(kind, text.removesuffix("\n"))
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidConstraint(f"not JSON: {error}", keyword=kind.value) from None
    return GrammarSpec(kind, {"schema": value} if kind is Kind.JSON_SCHEMA else value)


def _milliseconds(started: float) -> float:
    return round((time.perf_counter() - started) * 1e3, 3)
