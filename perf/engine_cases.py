"""The requests of the engine's benches: four schema families, and free answers of the same lengths."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from guided_grammar.spec import GrammarSpec, Kind
from jsonschema import Draft202012Validator


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _text(limit: int) -> dict[str, Any]:
    return {"type": "string", "maxLength": limit}


FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "flat": (
        "Classify as JSON with label and confidence (0-100): I was charged twice for my order and nobody answers.",
        _object(
            label={"enum": ["billing", "shipping", "technical", "other"]},
            confidence={"type": "integer", "minimum": 0, "maximum": 100},
        ),
    ),
    "nested": (
        "Call the booking function as JSON: a table for four at Luigi's on 2024-05-02, name Alice Johnson.",
        _object(
            name={"const": "book_table"},
            arguments=_object(
                restaurant=_text(24),
                guests={"type": "integer", "minimum": 1, "maximum": 20},
                date={"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"},
                contact=_object(full_name=_text(24)),
            ),
        ),
    ),
    "enums": (
        "Triage as JSON: customer cannot log in since yesterday, password reset does not work. Ticket LMN-8080.",
        _object(
            ticket_id={"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"},
            category={"enum": ["billing", "technical_support", "account_access", "shipping", "other"]},
            priority={"enum": ["low", "medium", "high", "critical"]},
            sentiment={"enum": ["positive", "neutral", "negative"]},
            requires_human_review={"type": "boolean"},
        ),
    ),
    "array": (
        "List the items as JSON: 2 keyboards at 49.90 and 1 mouse at 19.50.",
        _object(
            items={
                "type": "array",
                "minItems": 2,
                "maxItems": 2,
                "items": _object(
                    description=_text(20),
                    quantity={"type": "integer", "minimum": 1, "maximum": 9},
                    unit_price={"type": "number", "minimum": 0, "maximum": 100},
                ),
            }
        ),
    ),
}


@dataclass(frozen=True)
class Case:
    """max_tokens: to generate; exactly as many when free."""

    prompt: str
    spec: GrammarSpec | None
    max_tokens: int


def chat(text: str) -> str:
    return f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"


def constrained(count: int, max_tokens: int) -> list[Case]:
    """`count` requests but at least one of each family; numbered, so that no two prompts are equal."""
    families = list(FAMILIES.values())
    chosen = [families[i % len(families)] for i in range(max(count, len(families)))]
    return [
        Case(chat(f"({i}) {prompt}"), GrammarSpec(Kind.JSON_SCHEMA, {"schema": schema}), max_tokens)
        for i, (prompt, schema) in enumerate(chosen)
    ]


def free(cases: Sequence[Case], counts: Sequence[int]) -> list[Case]:
    """The same prompts without their constraint, to generate `counts` tokens."""
    return [Case(case.prompt, None, count) for case, count in zip(cases, counts, strict=True)]


def is_valid(case: Case, text: str) -> bool:
    """The text is a document that the case's schema allows."""
    assert case.spec is not None
    try:
        return bool(Draft202012Validator(case.spec.value["schema"]).is_valid(json.loads(text)))
    except ValueError:
        return False
