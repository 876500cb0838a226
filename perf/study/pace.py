"""What a constraint costs per token: constrained and free in turns, same prompts and budget, both run to the budget."""

from __future__ import annotations

from study.job import Job, ask
from study.lab import Lab

EXPERIMENT = "pace"
_TOKENS = 48
_ROUNDS = 2
_SCHEMA = {
    "type": "array",
    "minItems": 12,
    "maxItems": 12,
    "items": {
        "type": "object",
        "properties": {
            "topic": {"type": "string", "minLength": 3, "maxLength": 60},
            "weight": {"type": "integer", "minimum": 1, "maximum": 1000},
        },
        "required": ["topic", "weight"],
        "additionalProperties": False,
    },
}
_PROMPT = "Write a long JSON list of twelve topics about {}, each an object with topic and weight."
_SUBJECTS = ("oceans", "cities", "music", "maths", "food", "trains", "birds", "games")


async def run(lab: Lab) -> None:
    """Batches of 1, 8 and 32 rows; the arms alternate, so that a slow minute hits both."""
    for level in (1, 8, 32):
        for round_ in range(_ROUNDS):
            for arm in ("free", "constrained"):
                await lab.level([_job(arm, level, round_ * level + row) for row in range(level)], level)


def _job(arm: str, level: int, index: int) -> Job:
    prompt = _PROMPT.format(_SUBJECTS[index % len(_SUBJECTS)])
    constrained = arm == "constrained"
    return Job(EXPERIMENT, arm, level, "long", index, ask(prompt), _SCHEMA, None, constrained, _TOKENS)
