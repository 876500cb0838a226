"""One request of the study, before it is sent."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import jsonschema_rs

from study.families import FAMILIES
from study.ladder import Rules


@dataclass(frozen=True)
class Job:
    """`schema` constrains the answer where `constrained`, and judges it in any case. `tools` forces a named call."""

    experiment: str
    arm: str
    level: int
    case: str
    index: int
    messages: tuple[dict[str, Any], ...]
    schema: Any
    rules: Rules | None = None
    constrained: bool = True
    max_tokens: int = 96
    temperature: float = 0.7
    tool: str = ""

    def body(self, model: str) -> dict[str, Any]:
        """A streaming chat request; the seed is the index, so that every arm and level asks for the same draws."""
        body: dict[str, Any] = {
            "model": model,
            "messages": list(self.messages),
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "seed": self.index,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if self.tool:
            function = {"name": self.tool, "parameters": self.schema, "strict": True}
            body["tools"] = [{"type": "function", "function": function}]
            body["tool_choice"] = {"type": "function", "function": {"name": self.tool}}
        elif self.constrained:
            wanted = {"name": "answer", "strict": True, "schema": self.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": wanted}
        return body


def ask(text: str) -> tuple[dict[str, Any], ...]:
    return ({"role": "user", "content": text},)


def of_families(template: Job, count: int, seed: int = 0) -> list[Job]:
    """`count` jobs over the four families in turn; each document is drawn anew, so that no two are the same path."""
    rng = random.Random(seed)
    jobs = []
    for index in range(count):
        family = FAMILIES[index % len(FAMILIES)]
        jobs.append(
            replace(
                template,
                case=family.name,
                index=index,
                messages=ask(family.prompt(family.document(rng))),
                schema=family.schema,
                rules=family.rules,
                max_tokens=min(template.max_tokens, family.budget),
            )
        )
    return jobs


def validator(schema: Any) -> Callable[[Any], bool]:
    """jsonschema-rs with formats asserted."""
    return _validator(json.dumps(schema))


@lru_cache(maxsize=4096)
def _validator(text: str) -> Callable[[Any], bool]:
    return jsonschema_rs.validator_for(json.loads(text), validate_formats=True).is_valid
