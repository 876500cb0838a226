"""Conversations of two and five turns. SmolLM2 cannot reason over tool results, so the task is scripted: each schema
pins the values that the turn must carry, and what is judged is the plumbing from turn to turn."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from study.client import burst
from study.job import Job
from study.lab import Lab
from study.ladder import Outcome
from study.records import Record
from study.target import say

TWO, FIVE = "two_turn", "five_step"
Values = dict[str, Any]
_BUDGET = 96


@dataclass(frozen=True)
class Turn:
    """`tool` forces a call of that name, whose result is `result(values)`; "" asks for a document."""

    prompt: str
    properties: Callable[[Values], dict[str, Any]]
    tool: str = ""
    result: Callable[[Values], Values] | None = None


def _const(**values: Any) -> dict[str, Any]:
    return {name: {"const": value} for name, value in values.items()}


_PRICE = Turn(
    "Look up the price of {item}.",
    lambda v: _const(item=v["item"]),
    "get_price",
    lambda v: {"item": v["item"], "cents": v["cents"]},
)
_STOCK = Turn(
    "Look up how many are in stock.",
    lambda v: _const(item=v["item"]),
    "get_stock",
    lambda v: {"item": v["item"], "count": v["count"]},
)
_ANSWER = Turn("Answer with the item and its price.", lambda v: _const(item=v["item"], cents=v["cents"]))
_TOTAL = Turn("What do all of them cost?", lambda v: _const(total_cents=v["cents"] * v["count"]))
_PLAN = Turn(
    "Plan the order in two to four short steps.",
    lambda _: {
        "steps": {
            "type": "array",
            "minItems": 2,
            "maxItems": 4,
            "items": {"type": "string", "minLength": 3, "maxLength": 40},
        }
    },
)
_FINAL = Turn(
    "Sum up: item, price, number and total.",
    lambda v: _const(item=v["item"], cents=v["cents"], count=v["count"], total_cents=v["cents"] * v["count"]),
)
SCRIPTS = {TWO: (_PRICE, _ANSWER), FIVE: (_PRICE, _STOCK, _TOTAL, _PLAN, _FINAL)}


async def run(lab: Lab) -> None:
    """All conversations of both lengths; every turn is validated on its own."""
    for name, count in ((TWO, lab.profile.two_turn), (FIVE, lab.profile.five_step)):
        say(f"{name}: {count} conversations, {lab.profile.talkers} at a time")
        gate = asyncio.Semaphore(lab.profile.talkers)

        async def one(index: int, name: str = name, gate: asyncio.Semaphore = gate) -> None:
            async with gate:
                await _converse(lab, name, index)

        await asyncio.gather(*(one(index) for index in range(count)))


async def _converse(lab: Lab, name: str, index: int) -> None:
    """Ends at the first turn that fails: the turns after it would be judged on a broken history."""
    rng = random.Random(index)
    values: Values = {"item": rng.choice(("lamp", "desk", "chair")), "cents": rng.randint(100, 999), "count": 3}
    messages: list[dict[str, Any]] = []
    async with lab.client() as client:
        for step, turn in enumerate(SCRIPTS[name]):
            messages.append({"role": "user", "content": turn.prompt.format(**values)})
            job = _job(lab, name, index, step, turn, values, messages)
            (record,) = await burst(client, [job], 1)
            if record.outcome is not Outcome.OK:
                return
            messages += _history(turn, record, values, step)


def _job(lab: Lab, name: str, index: int, step: int, turn: Turn, values: Values, messages: list[dict[str, Any]]) -> Job:
    properties = turn.properties(values)
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    wanted = {key: field["const"] for key, field in properties.items() if "const" in field}
    return Job(
        experiment=name,
        arm="constrained",
        level=lab.profile.talkers,
        case=f"turn {step + 1}",
        index=index,
        messages=tuple(messages),
        schema=schema,
        rules=lambda document: all(document[key] == value for key, value in wanted.items()),
        max_tokens=_BUDGET,
        tool=turn.tool,
    )


def _history(turn: Turn, record: Record, values: Values, step: int) -> list[dict[str, Any]]:
    """What the conversation gains: the answer, or the call and its result."""
    if turn.result is None:
        return [{"role": "assistant", "content": record.text}]
    call = {
        "id": f"call_{step}",
        "type": "function",
        "function": {"name": turn.tool, "arguments": record.text},
    }
    answer = {"role": "tool", "tool_call_id": call["id"], "content": json.dumps(turn.result(values))}
    return [{"role": "assistant", "content": None, "tool_calls": [call]}, answer]
