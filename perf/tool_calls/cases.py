"""Tools with schemas of every kind, and the ways to ask for calls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from guided_grammar.formats import ToolFormat
from guided_grammar.spec import GrammarSpec, Kind

_POINT = {
    "type": "object",
    "properties": {"x": {"type": "number", "minimum": 0, "maximum": 1}, "tag": {"enum": ["a", "<b>", "it's", '"']}},
    "required": ["x"],
    "additionalProperties": False,
}
SCHEMAS: dict[str, dict[str, Any]] = {
    "scalars": {
        "type": "object",
        "properties": {
            "text": {"type": "string", "maxLength": 12},
            "free": {"type": "string"},
            "code": {"type": "string", "pattern": "^[0-9]{2,4}$"},
            "count": {"type": "integer", "minimum": -5, "maximum": 120},
            "flag": {"type": "boolean"},
            "unit": {"enum": ["celsius", "5", 5, None, True]},
        },
        "required": ["text", "count", "unit"],
        "additionalProperties": False,
    },
    "nested": {
        "type": "object",
        "properties": {
            "points": {"type": "array", "items": {"$ref": "#/$defs/point"}, "minItems": 1, "maxItems": 2},
            "when": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
            "mixed": {"type": ["string", "integer", "boolean"], "maxLength": 6},
            "deep": {"type": "object", "properties": {"a": {"$ref": "#/$defs/point"}}, "additionalProperties": False},
        },
        "required": ["points", "mixed"],
        "additionalProperties": False,
        "$defs": {"point": _POINT},
    },
    "nothing": {"type": "object", "properties": {}, "additionalProperties": False},
    "few": {
        "type": "object",
        "properties": {key: {"type": "integer", "maximum": 9, "minimum": 0} for key in ("zeta", "alpha", "mid")},
        "minProperties": 1,
        "maxProperties": 2,
        "additionalProperties": False,
    },
}


@dataclass(frozen=True)
class Mode:
    """choice: auto, required or the name of a tool. thinks: a block of reasoning comes first."""

    choice: str
    parallel: bool
    thinks: bool

    @property
    def name(self) -> str:
        parts = [self.choice if self.choice in ("auto", "required") else "named"]
        parts += ["parallel"] if self.parallel else ["single"]
        return "+".join([*parts, *(["thinking"] if self.thinks else [])])

    def spec(self, row: ToolFormat) -> GrammarSpec:
        choice = self.choice if self.choice in ("auto", "required") else {"name": self.choice}
        tools = [{"name": name, "parameters": schema} for name, schema in SCHEMAS.items()]
        return GrammarSpec(
            Kind.TOOLS, {"format": row.name, "tools": tools, "choice": choice, "parallel": self.parallel}
        )


def modes(row: ToolFormat) -> Iterator[Mode]:
    """Every way to ask this family for calls."""
    for choice in ("auto", "required", "scalars"):
        for parallel in (True, False):
            for thinks in (False, True) if row.reasoning is not None else (False,):
                yield Mode(choice, parallel, thinks)
