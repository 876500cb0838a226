"""The programs of `examples/`, as a reader would run them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from guided_testing.running_stack import ROOT, RunningStack

EXAMPLES = ROOT / "examples"
CATEGORIES = {"billing", "shipping", "account"}
Holds = Callable[[Any], bool]
PROGRAMS: dict[str, Holds] = {
    "openai_json.py": lambda o: o["category"] in CATEGORIES and 5 <= len(o["summary"]) <= 40,
    "openai_parse.py": lambda o: o["category"] in CATEGORIES and len(o["summary"]) <= 40,
    "openai_stream.py": lambda o: -40 <= o["celsius"] <= 50,
    "openai_async.py": lambda o: len(o) == 3 and set(o.values()) <= {"yes", "no"},
    "openai_choice.py": lambda o: o["choice"] in ("positive", "negative", "neutral") and " + " in o["sum"],
    "openai_tool.py": lambda o: o["arguments"]["unit"] in ("celsius", "fahrenheit") and o["answer"] is not None,
    "langchain_json.py": lambda o: o["category"] in CATEGORIES and len(o["summary"]) <= 40,
    "litellm_json.py": lambda o: o["mood"] in ("good", "bad") and 0 <= o["score"] <= 10,
    "openai_agents.py": lambda o: o["category"] in CATEGORIES and len(o["summary"]) <= 40,
}


def ran(stack: RunningStack, *command: str) -> str:
    env = {**os.environ, "OPENAI_BASE_URL": f"{stack.url}/v1", "OPENAI_API_KEY": "any"}
    # a price list that LiteLLM would fetch otherwise
    env["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_example_gives_what_it_says(stack: RunningStack, name: str) -> None:
    assert PROGRAMS[name](json.loads(ran(stack, sys.executable, str(EXAMPLES / name))))


def test_the_curl_example_shows_an_answer_and_a_refusal(stack: RunningStack) -> None:
    answer, refusal = map(json.loads, ran(stack, "bash", str(EXAMPLES / "curl.sh")).splitlines())
    assert answer["choices"][0]["message"]["content"] in ("yes", "no")
    assert refusal["error"]["code"] == 400 and "pattern" in refusal["error"]["message"]


def test_the_page_lists_every_example() -> None:
    listed = set(re.findall(r"^\| `(.+?)` \|", (EXAMPLES / "README.md").read_text(), re.MULTILINE))
    programs = {path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".sh")}
    tested = {*PROGRAMS, "curl.sh"} | {path.name for path in EXAMPLES.glob("agent_*.py")}
    assert listed == programs == tested
