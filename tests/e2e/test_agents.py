"""Agents in two and five turns (D134 to D136), and forced calls for real tools, through the clients people use."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from guided_testing.running_stack import ROOT, RunningStack
from openai import OpenAI
from tool_tasks import CUT, forced, tasks

from .test_examples import EXAMPLES, ran

MODEL = "guided_llm"
NUM_TASKS = 4
WEATHER = {
    "type": "object",
    "properties": {
        "town": {"type": "string", "minLength": 1, "maxLength": 20},
        "days": {"type": "integer", "minimum": 1, "maximum": 9},
    },
    "required": ["town", "days"],
    "additionalProperties": False,
}


def steps(program: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The tools that an example declares, with their properties."""
    space: dict[str, Any] = {}
    source = (EXAMPLES / program).read_text().partition("\nmessages")[0].partition("\nmodel = ")[0]
    exec(compile(source, program, "exec"), space)
    for name, properties, _ in space["STEPS"]:
        yield name, space["tool"](name, properties)["function"]["parameters"]


@pytest.mark.parametrize("program", ["agent_openai.py", "agent_langchain.py"])
def test_d135_an_agent_of_five_steps_calls_what_it_must_with_the_values_it_was_given(
    stack: RunningStack, program: str
) -> None:
    shown = json.loads(ran(stack, sys.executable, str(EXAMPLES / program)))
    expected = list(steps(program))
    assert [call["name"] for call in shown["calls"]] == [name for name, _ in expected] and len(expected) == 5
    for call, (_, schema) in zip(shown["calls"], expected, strict=True):
        jsonschema.validate(call["arguments"], schema)
    assert isinstance(shown["answer"], str)


def test_d134_d136_two_turns_hold_each_on_its_own_and_the_second_repeats_the_firsts_value(client: OpenAI) -> None:
    tool: Any = {"type": "function", "function": {"name": "forecast", "parameters": WEATHER}}
    messages: list[Any] = [{"role": "user", "content": "What will the weather be in Ulm over the next days?"}]
    first: Any = client.chat.completions.create(
        model=MODEL, messages=messages, tools=[tool], tool_choice="required", parallel_tool_calls=False
    )
    [call] = first.choices[0].message.tool_calls
    arguments = json.loads(call.function.arguments)
    jsonschema.validate(arguments, WEATHER)
    messages += [first.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": '{"celsius": 21}'}]
    report = {
        "type": "object",
        "properties": {
            "town": {"const": arguments["town"]},
            "celsius": {"type": "integer", "minimum": -60, "maximum": 60},
        },
        "required": ["town", "celsius"],
        "additionalProperties": False,
    }
    second = client.chat.completions.create(
        model=MODEL,
        messages=messages,
        response_format={"type": "json_schema", "json_schema": {"name": "report", "schema": report, "strict": True}},
    )
    answer = json.loads(second.choices[0].message.content or "")
    jsonschema.validate(answer, report)
    assert answer["town"] == arguments["town"]


@pytest.mark.skipif(not (ROOT.parent / "shared/data/bfcl").is_dir(), reason="corpus not present")
def test_forced_calls_of_sampled_tasks_are_valid_for_their_tools(client: OpenAI) -> None:
    faults = [forced(client, task, max_tokens=300).fault for task in random.Random(5).sample(tasks(), NUM_TASKS)]
    assert "" in faults and set(faults) <= {"", CUT}
