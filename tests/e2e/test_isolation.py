"""Worker processes may die under load, and requests without a constraint have nothing to do with them."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
from guided_testing.family import children
from guided_testing.running_stack import RunningStack

_STREAMS = 16
_SECONDS = 12.0


def workers(stack: RunningStack) -> list[int]:
    """Compile and proof processes of both services."""
    assert stack.process is not None
    found, left = [], children(stack.process.pid)
    while left:
        pid = left.pop()
        left += children(pid)
        try:
            command = Path(f"/proc/{pid}/cmdline").read_text()
        except OSError:
            continue
        if "guided_grammar.worker" in command:
            found.append(pid)
    return found


def schema(key: str) -> dict[str, Any]:
    properties = {
        key: {"type": "integer", "minimum": 0, "maximum": 99},
        "mood": {"enum": ["good", "bad"]},
        "word": {"type": "string", "pattern": "^[a-z]{2,6}$"},
    }
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def outcome(stack: RunningStack, key: str) -> str:
    """ "valid", or what the client is told instead."""
    body = {
        "messages": [{"role": "user", "content": "Answer."}],
        "guided_json": schema(key),
        "max_tokens": 80,
        "temperature": 1.0,
    }
    answer = httpx.post(f"{stack.url}/v1/chat/completions", json=body, timeout=120)
    if answer.status_code != 200:
        return f"{answer.status_code} {answer.json()['error']['message']}"
    found = json.loads(answer.json()["choices"][0]["message"]["content"])
    whole = set(found) == set(schema(key)["properties"]) and found["mood"] in ("good", "bad")
    return "valid" if whole and 2 <= len(found["word"]) <= 6 and 0 <= found[key] <= 99 else f"invalid {found}"


def test_killed_workers_under_load_cost_at_most_the_compiles_they_were_in(stack: RunningStack) -> None:
    """Each request brings a schema of its own, so that workers are busy; a killed compile is tried once more."""
    outcomes, done = Counter[str](), threading.Event()

    def stream(index: int) -> None:
        number = 0
        while not done.is_set():
            number += 1
            outcomes[outcome(stack, f"k{index}n{number}")] += 1

    threads = [threading.Thread(target=stream, args=(i,)) for i in range(_STREAMS)]
    for thread in threads:
        thread.start()
    killed, deadline = 0, time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        alive = sorted(workers(stack))
        if alive:
            os.kill(alive[killed % len(alive)], signal.SIGKILL)
            killed += 1
        time.sleep(1.5)
    done.set()
    for thread in threads:
        thread.join()
    assert killed >= 3 and outcomes["valid"] >= _STREAMS
    assert sum(outcomes.values()) - outcomes["valid"] <= killed, outcomes
    assert all(o == "valid" or o.startswith(("400 ", "429 ", "503 ")) for o in outcomes), outcomes


def grammar_counters(stack: RunningStack) -> dict[str, str]:
    """Everything that both services count about grammars."""
    found: dict[str, str] = {}
    for url in (f"{stack.url}/metrics", f"http://127.0.0.1:{stack.metrics_port}/metrics"):
        lines = httpx.get(url, timeout=10).text.splitlines()
        named = (line.rpartition(" ") for line in lines if not line.startswith("#"))
        words = (
            "guided_grammar_",
            "guided_frontend_grammar_",
            "guided_fill",
            "guided_over_budget",
            "guided_constrained",
        )
        found |= {name: value for name, _, value in named if name.startswith(words)}
    return found


def test_f82_counters_prove_that_free_requests_touch_no_grammar(stack: RunningStack) -> None:
    assert outcome(stack, "settled") == "valid"
    time.sleep(0.5)
    before = grammar_counters(stack)
    body = {"messages": [{"role": "user", "content": "Tell me a story."}], "max_tokens": 12}
    for stream in (False, True):
        answer = httpx.post(f"{stack.url}/v1/chat/completions", json={**body, "stream": stream}, timeout=60)
        assert answer.status_code == 200
    time.sleep(0.5)
    assert grammar_counters(stack) == before
    assert outcome(stack, "another") == "valid"
    time.sleep(0.5)
    after = grammar_counters(stack)
    moved = {name.partition("{")[0] for name in after if after[name] != before.get(name)}
    assert moved >= {"guided_filled_rows_total", "guided_constrained_requests_total"}
