"""Many distinct schemas against one grammar cache: the default, one that is far too small, and the default again."""

from __future__ import annotations

import random
from typing import Any

from study.job import Job, ask
from study.lab import Lab

EXPERIMENT = "cardinality"
DEFAULT, SMALL, AGAIN = "default", "1 MiB", "default again"
_DEFAULT_BYTES, _SMALL_BYTES = 512 << 20, 1 << 20
_NAMES = ("city", "code", "count", "label", "level", "owner", "price", "score", "state", "unit")


async def run(lab: Lab) -> None:
    """Each arm is a server of its own and inherits no cache; the third shows that nothing drifted."""
    arms = ((DEFAULT, _DEFAULT_BYTES), (SMALL, _SMALL_BYTES), (AGAIN, _DEFAULT_BYTES))
    for arm, size in arms:
        with lab.restarted({"GUIDED_GRAMMAR_CACHE_BYTES": str(size)}) as restarted:
            for distinct in lab.profile.distinct:
                await restarted.level(jobs(arm, distinct, lab.profile.reads), lab.profile.readers)


def jobs(arm: str, distinct: int, reads: int) -> list[Job]:
    """`reads` rounds over `distinct` schemas; `level` holds the number of schemas."""
    shapes = [_shape(random.Random(at), at) for at in range(distinct)]
    rounds = [(at, shape) for _ in range(reads) for at, shape in enumerate(shapes)]
    return [
        Job(EXPERIMENT, arm, distinct, f"schema {at}", index, ask(_prompt(values)), schema, None)
        for index, (at, (schema, values)) in enumerate(rounds)
    ]


def _shape(rng: random.Random, at: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Schema of 3 to 7 fields, every string bounded, and a value for each field; distinct by a field's name."""
    names = [*rng.sample(_NAMES, rng.randint(2, 6)), f"key{at}"]
    fields = {name: _field(rng) for name in names}
    properties = {name: schema for name, (schema, _) in fields.items()}
    schema = {"type": "object", "properties": properties, "required": names, "additionalProperties": False}
    return schema, {name: value for name, (_, value) in fields.items()}


def _field(rng: random.Random) -> tuple[dict[str, Any], Any]:
    kind = rng.randrange(3)
    if kind == 0:
        return {"type": "string", "minLength": 1, "maxLength": rng.randint(4, 12)}, rng.choice(("red", "blue", "cold"))
    if kind == 1:
        high = rng.randint(10, 999)
        return {"type": "integer", "minimum": 0, "maximum": high}, rng.randint(0, high)
    values = rng.sample(("north", "south", "east", "west", "up", "down"), 3)
    return {"enum": values}, values[0]


def _prompt(values: dict[str, Any]) -> str:
    given = ", ".join(f"{name} is {value}" for name, value in values.items())
    return f"Answer as one JSON object: {given}."
