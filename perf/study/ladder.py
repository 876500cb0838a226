"""The validation ladder: what a client of any structured-output server should check, in this order.

Rungs: how the answer ended, whether it parses, whether its schema accepts it, whether your own rules hold. An answer
that was cut is discarded at the first rung and never repaired. Standing alone, this file is usable as a client helper.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

COMPLETE = frozenset({"stop", "tool_calls"})
Rules = Callable[[Any], bool]
Schema = dict[str, Any] | bool


class Outcome(StrEnum):
    """Every request is in exactly one bucket: the first that applies, in this order."""

    TRANSPORT = "transport"
    TRUNCATION = "truncation"
    REFUSED = "refused"
    VIOLATION = "schema_violation"
    PARSE = "parse_failure"
    SEMANTIC = "semantic"
    OK = "ok"


@dataclass(frozen=True)
class Climb:
    """Outcome and the last rung that was reached, with the parsed document if there is one."""

    outcome: Outcome
    rung: str
    document: Any = None


def climb(finish_reason: str | None, text: str, is_valid: Rules | None = None, rules: Rules | None = None) -> Climb:
    """`is_valid` is the schema's validator and `rules` the business rules; None skips a rung. Raises nothing."""
    if finish_reason not in COMPLETE:
        return Climb(Outcome.TRUNCATION, "termination")
    try:
        document = json.loads(text)
    except ValueError:
        return Climb(Outcome.PARSE, "parse")
    if is_valid is not None and not is_valid(document):
        return Climb(Outcome.VIOLATION, "schema", document)
    if rules is not None and not _holds(rules, document):
        return Climb(Outcome.SEMANTIC, "rules", document)
    return Climb(Outcome.OK, "rules", document)


def _holds(rules: Rules, document: Any) -> bool:
    """Rules are written for valid documents: one of another shape breaks them."""
    try:
        return rules(document)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        return False
