"""The four workload families: flat classification, nested tool call, enum-heavy triage, array of objects."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Document = dict[str, Any]
_CATEGORIES = ("billing", "shipping", "account", "hardware")
_LEVELS = ("low", "medium", "high", "critical")
_WORDS = ("parcel", "invoice", "password", "screen", "charge", "battery", "refund", "login")


@dataclass(frozen=True)
class Family:
    """`document(rng)` is a right answer; `rules(document)` are the business rules, which no schema expresses here."""

    name: str
    schema: Document
    budget: int
    document: Callable[[random.Random], Document]
    rules: Callable[[Document], bool]

    def prompt(self, answer: Document) -> str:
        """Names the format, the fields and every value, as the study's guidance asks."""
        return f"Answer with one JSON object with the keys {_keys(self.schema)}. Copy it: {json.dumps(answer)}"


def _keys(schema: Document) -> str:
    return ", ".join(schema["properties"])


def _object(properties: Mapping[str, Any]) -> Document:
    """Every property required and no other."""
    fields = dict(properties)
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def _sentence(rng: random.Random) -> str:
    return f"the {' and the '.join(rng.sample(_WORDS, 3))} on day {rng.randint(1, 28)}"


def _flat(rng: random.Random) -> Document:
    category = rng.choice(_CATEGORIES)
    return {
        "category": category,
        "priority": rng.choice(_LEVELS[:3]),
        "confidence": rng.randint(50, 99),
        "summary": f"a case of {category}: {_sentence(rng)}",
    }


def _call(rng: random.Random) -> Document:
    low = rng.randint(1, 40)
    window = {"from": low, "to": low + rng.randint(1, 40)}
    return {"name": "search_tickets", "arguments": {"limit": 5, "window": window, "query": _sentence(rng)}}


def _triage(rng: random.Random) -> Document:
    severity = rng.choice(_LEVELS)
    return {
        "category": rng.choice(_CATEGORIES),
        "severity": severity,
        "channel": rng.choice(("email", "chat", "phone")),
        "tier": rng.choice(("free", "pro", "enterprise")),
        "escalate": severity == "critical",
        "note": _sentence(rng),
    }


def _invoice(rng: random.Random) -> Document:
    lines = [{"item": rng.choice(_WORDS), "cents": rng.randint(1, 999)} for _ in range(rng.randint(2, 4))]
    return {"lines": lines, "total_cents": sum(line["cents"] for line in lines)}


_WORD = {"type": "string", "minLength": 1, "maxLength": 24}
_TEXT = {"type": "string", "minLength": 1, "maxLength": 90}
FAMILIES = (
    Family(
        "flat",
        _object(
            {
                "category": {"enum": list(_CATEGORIES)},
                "priority": {"enum": list(_LEVELS[:3])},
                "confidence": {"type": "integer", "minimum": 0, "maximum": 100},
                "summary": _TEXT,
            }
        ),
        80,
        _flat,
        lambda d: d["category"] in d["summary"],
    ),
    Family(
        "nested",
        _object(
            {
                "name": {"const": "search_tickets"},
                "arguments": _object(
                    {
                        "limit": {"type": "integer", "minimum": 1, "maximum": 50},
                        "window": _object(
                            {k: {"type": "integer", "minimum": 0, "maximum": 99} for k in ("from", "to")}
                        ),
                        "query": _TEXT,
                    }
                ),
            }
        ),
        80,
        _call,
        lambda d: d["arguments"]["window"]["from"] <= d["arguments"]["window"]["to"],
    ),
    Family(
        "enums",
        _object(
            {
                "category": {"enum": list(_CATEGORIES)},
                "severity": {"enum": list(_LEVELS)},
                "channel": {"enum": ["email", "chat", "phone"]},
                "tier": {"enum": ["free", "pro", "enterprise"]},
                "escalate": {"type": "boolean"},
                "note": _TEXT,
            }
        ),
        80,
        _triage,
        lambda d: d["escalate"] == (d["severity"] == "critical"),
    ),
    Family(
        "array",
        _object(
            {
                "lines": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": 4,
                    "items": _object(
                        {"item": _WORD, "cents": {"type": "integer", "minimum": 1, "maximum": 999}},
                    ),
                },
                "total_cents": {"type": "integer", "minimum": 1, "maximum": 9999},
            }
        ),
        160,
        _invoice,
        lambda d: d["total_cents"] == sum(line["cents"] for line in d["lines"]),
    ),
)
