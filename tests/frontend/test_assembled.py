"""A stream put together again is the whole answer: 200 drawn requests, by hand and by the SDK's own accumulator."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, replace
from typing import Any

import pytest
from guided_frontend.served import ServedModel
from guided_frontend.settings import Settings
from guided_testing.scripted_backend import Answer, ScriptedBackend, load_model

from .conftest import Frontend, served_by

TOOL = {
    "type": "function",
    "function": {"name": "look", "parameters": {"type": "object", "properties": {"q": {"type": "string"}}}},
}
WORDS = [
    "plain",
    " text",
    "\n",
    "é",
    "日本",
    "👩‍👩‍👧",
    "🙂",
    '"',
    "\\",
    "<",
    "</",
    "{",
    "}",
    "\u2028",
    "\x85",
    "\x7f",
    "<tool",
    "</think",
]


@dataclass(frozen=True)
class Drawn:
    """A request and the pieces in which the model's answer to it comes."""

    fields: dict[str, Any]
    pieces: tuple[str, ...]
    finish_reason: str


def drawn(seed: int) -> Drawn:
    """Any mix of tools, reasoning, log-probabilities and several choices; the answer is cut anywhere."""
    rng = random.Random(seed)
    fields: dict[str, Any] = {"seed": seed, "n": rng.choice([1, 1, 2, 3])}
    text = "".join(rng.choices(WORDS, k=rng.randint(0, 12)))
    if rng.random() < 0.5:
        fields["tools"] = [TOOL]
        call = json.dumps(
            {"name": "look", "arguments": {"q": "".join(rng.choices(WORDS, k=4))}}, ensure_ascii=rng.random() < 0.5
        )
        text += "".join(f"<tool_call>\n{call}\n</tool_call>" for _ in range(rng.randint(1, 3)))
    if rng.random() < 0.4:
        fields["think"] = True
        text = f"<think>\n{''.join(rng.choices(WORDS, k=rng.randint(0, 8)))}\n</think>\n\n{text}"
    if rng.random() < 0.4:
        fields |= {"logprobs": True, "top_logprobs": rng.randint(0, 3)}
    if rng.random() < 0.3:
        text = text[: rng.randint(0, len(text))]
    cuts = sorted(rng.sample(range(len(text) + 1), min(len(text), rng.randint(0, 20))))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    return Drawn(fields, tuple(pieces), rng.choice(["stop", "length"]))


@pytest.fixture(scope="module")
def thinker(tmp_path_factory: pytest.TempPathFactory) -> Any:
    settings = Settings(served_model_names=("m",), tool_format="hermes", max_model_len=4096)
    template = "{{ enable_thinking }}{{ tools }}<tool_call>{{ messages[0].content }}"
    model: ServedModel = load_model(tmp_path_factory.mktemp("thinker"), settings, template)
    with served_by(settings, ScriptedBackend(), model) as frontend:
        yield frontend


def assembled(text: str) -> list[dict[str, Any]]:
    """What a client that adds up deltas by hand has in the end."""
    choices: dict[int, dict[str, Any]] = {}
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    assert lines.pop() == "[DONE]"
    for chunk in map(json.loads, lines):
        for choice in chunk["choices"]:
            held = choices.setdefault(
                choice["index"], {"content": "", "reasoning": "", "calls": [], "logprobs": [], "end": None}
            )
            assert held["end"] is None, "a chunk after the finish reason"
            _add(held, choice["delta"])
            held["logprobs"] += (choice["logprobs"] or {"content": []})["content"]
            held["end"] = choice["finish_reason"]
    return [choices[index] for index in sorted(choices)]


def _add(held: dict[str, Any], delta: dict[str, Any]) -> None:
    held["content"] += delta.get("content") or ""
    held["reasoning"] += delta.get("reasoning_content") or ""
    for call in delta.get("tool_calls", ()):
        if call["index"] == len(held["calls"]):
            assert call["id"] and call["type"] == "function"
            held["calls"].append((call["function"]["name"], ""))
        name, arguments = held["calls"][call["index"]]
        held["calls"][call["index"]] = (name, arguments + call["function"]["arguments"])


def parts(choice: dict[str, Any]) -> dict[str, Any]:
    """A whole answer's choice in the form of `assembled`."""
    message = choice["message"]
    calls = [(call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls") or ()]
    return {
        "content": message["content"] or "", "reasoning": message.get("reasoning_content") or "", "calls": calls,
        "logprobs": (choice["logprobs"] or {"content": []})["content"], "end": choice["finish_reason"],
    }  # fmt: skip


def ask(thinker: Frontend, request: Drawn, **fields: Any) -> Any:
    thinker.answers(Answer(request.pieces, request.finish_reason))
    answer = thinker.ask(**request.fields, **fields)
    assert answer.status_code == 200, answer.text
    return answer


@pytest.mark.parametrize("seed", range(200))
def test_f7_an_assembled_stream_is_the_whole_answer(thinker: Frontend, seed: int) -> None:
    request = drawn(seed)
    whole = [parts(choice) for choice in ask(thinker, request).json()["choices"]]
    assert assembled(ask(thinker, request, stream=True).text) == whole


@pytest.mark.parametrize("seed", range(0, 200, 10))
def test_the_sdks_accumulator_agrees_with_the_whole_answer(thinker: Frontend, seed: int) -> None:
    # the SDK raises for an answer that was cut, instead of giving it
    request = replace(drawn(seed), finish_reason="stop")
    whole = [parts(choice) for choice in ask(thinker, request).json()["choices"]]
    extra = {name: request.fields[name] for name in ("think",) if name in request.fields}
    known = {name: value for name, value in request.fields.items() if name not in extra}
    thinker.answers(Answer(request.pieces, request.finish_reason))
    with thinker.client.chat.completions.stream(
        model="m", messages=[{"role": "user", "content": "Hi"}], extra_body=extra, **known
    ) as stream:
        for _ in stream:
            pass
        final = stream.get_final_completion().model_dump()
    for choice in final["choices"]:
        choice["message"]["reasoning_content"] = choice["message"].get("reasoning_content")
    assert [parts(c)["content"] for c in final["choices"]] == [w["content"] for w in whole]
    assert [parts(c)["calls"] for c in final["choices"]] == [w["calls"] for w in whole]
    assert [c["finish_reason"] for c in final["choices"]] == [w["end"] for w in whole]


def test_the_draw_holds_every_kind() -> None:
    requests = [drawn(seed) for seed in range(200)]
    texts = ["".join(request.pieces) for request in requests]
    assert sum("tools" in r.fields for r in requests) > 50 and sum("think" in r.fields for r in requests) > 50
    assert sum("logprobs" in r.fields for r in requests) > 50 and sum(r.fields["n"] > 1 for r in requests) > 50
    assert sum("🙂" in text for text in texts) > 20 and sum("</tool_call>" in text for text in texts) > 50
