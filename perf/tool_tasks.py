"""Forced calls for sampled tasks of the function calling leaderboard, through the openai client of a running stack.

    python perf/tool_tasks.py --url http://127.0.0.1:9000/v1 --tasks 100

One JSON line for each task; the last line counts. `fault` is "" where the answer is calls to declared tools whose
arguments are valid for their schemas, "cut" where the answer reached `--max-tokens`. Exit status 1 on a fault.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jsonschema
from openai import BadRequestError, OpenAI

_CORPUS = Path(__file__).parents[1].parent / "shared/data/bfcl/bfcl.jsonl"
CUT = "cut"


@dataclass(frozen=True)
class Outcome:
    """fault: "" for valid calls, "cut" at the token bound, else what is wrong. calls: how many there were."""

    id: str
    fault: str
    calls: int
    seconds: float


def tasks() -> list[dict[str, Any]]:
    """Tasks with a conversation and tools."""
    rows = [json.loads(line) for line in _CORPUS.read_text(encoding="utf-8").splitlines()]
    return [row for row in rows if row.get("messages") and row.get("tools")]


def forced(client: OpenAI, task: dict[str, Any], max_tokens: int, seed: int = 0) -> Outcome:
    """One answer with `tool_choice: required`."""
    begin = time.monotonic()
    try:
        reply: Any = client.chat.completions.create(
            model="guided_llm", messages=task["messages"], tools=task["tools"], tool_choice="required",
            parallel_tool_calls=bool(task["parallel"]), max_tokens=max_tokens, seed=seed,
        )  # fmt: skip
    except BadRequestError as error:
        return Outcome(task["id"], f"refused: {error.body}", 0, round(time.monotonic() - begin, 2))
    choice = reply.choices[0]
    calls = choice.message.tool_calls or []
    fault = CUT if choice.finish_reason == "length" else _fault(task, calls)
    return Outcome(task["id"], fault, len(calls), round(time.monotonic() - begin, 2))


def _fault(task: dict[str, Any], calls: list[Any]) -> str:
    schemas = {tool["function"]["name"]: tool["function"].get("parameters", {}) for tool in task["tools"]}
    if not calls:
        return "no call"
    for call in calls:
        if call.function.name not in schemas:
            return f"unknown tool {call.function.name}"
        try:
            jsonschema.validate(json.loads(call.function.arguments), schemas[call.function.name])
        except (ValueError, jsonschema.ValidationError) as error:
            return f"{call.function.name}: {str(error).splitlines()[0]}"
    return ""


def main() -> int:
    """Writes the lines; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:9000/v1")
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--max-tokens", type=int, default=256)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=3600.0, help="no task is begun after this time")
    asked = parser.parse_args()
    counts: Counter[str] = Counter()
    begin = time.monotonic()
    with OpenAI(base_url=asked.url, api_key="any", max_retries=0, timeout=300) as client:
        for task in random.Random(asked.seed).sample(tasks(), asked.tasks):
            if time.monotonic() - begin > asked.seconds:
                break
            outcome = forced(client, task, asked.max_tokens, asked.seed)
            kind = outcome.fault if outcome.fault in ("", CUT) else outcome.fault.partition(":")[0]
            counts[kind or "valid"] += 1
            print(json.dumps(asdict(outcome)), flush=True)
    print(json.dumps(counts))
    return 0 if set(counts) <= {"valid", CUT} else 1


if __name__ == "__main__":
    sys.exit(main())
