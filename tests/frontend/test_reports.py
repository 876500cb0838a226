"""Faults that other servers' users reported of requests, streams and parsers, replayed here (shared/data/bugs)."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from guided_engine.protocol import Event
from guided_frontend.chunks import ChoiceReader, MessageBuilder
from guided_frontend.reasoning import ReasoningSplitter
from guided_frontend.tool_calls import CallParser
from guided_grammar.formats import tool_format
from guided_testing.scripted_backend import Answer

from .conftest import Frontend

CORPUS = Path(__file__).parents[2].parent / "shared/data/bugs/BUGS.jsonl"
ROWS: dict[str, Any] = {}
if CORPUS.is_file():
    ROWS = {row["id"]: row for row in map(json.loads, CORPUS.read_text(encoding="utf-8").splitlines())}
pytestmark = [pytest.mark.corpus, pytest.mark.skipif(not ROWS, reason="corpus not present")]

DOCUMENT, CALLS = "json_schema", "tools"
# Report to the kind of the constraint that reaches the model; none of these bodies may be refused or left free.
SERVED: dict[str, list[str | None]] = {
    "bug-035": [CALLS], "bug-059": [DOCUMENT], "bug-060": [DOCUMENT], "bug-061": ["json_object", DOCUMENT],
    "bug-062": [DOCUMENT], "bug-084": ["json_object"], "bug-086": [CALLS], "bug-088": [CALLS], "bug-094": [None],
    "bug-095": [None], "bug-101": [CALLS], "bug-105": [CALLS], "bug-138": [DOCUMENT], "bug-139": [DOCUMENT],
    "bug-148": [DOCUMENT],
}  # fmt: skip


def bodies(row: Any) -> list[dict[str, Any]]:
    found = row["input"] if isinstance(row["input"], list) else [row["input"]]
    return [one["body"] for one in found if isinstance(one, dict) and "body" in one]


@pytest.mark.parametrize("name", SERVED)
def test_a_reported_body_is_served_under_its_constraint(frontend: Frontend, name: str) -> None:
    kinds = []
    for body in bodies(ROWS[name]):
        answer = frontend.post({k: v for k, v in body.items() if k != "model"})
        assert answer.status_code == 200, answer.text
        sent = frontend.backend.requests[-1].constraint
        kinds.append(json.loads(sent)["kind"] if sent else None)
    assert kinds == SERVED[name]


def test_every_report_with_a_body_is_replayed() -> None:
    assert {name for name, row in ROWS.items() if "check" not in row and bodies(row)} <= set(SERVED)


def test_bug_053_a_misspelled_constraint_is_refused(frontend: Frontend) -> None:
    known, unknown = ROWS["bug-053"]["input"]["body_extra"].items()
    assert frontend.ask(**dict([known])).status_code == 200
    assert json.loads(frontend.backend.requests[-1].constraint) == {"kind": "choice", "value": known[1]}
    refused = frontend.ask(**dict([unknown]))
    assert refused.status_code == 400 and refused.json()["error"]["param"] == unknown[0]


CUT = '<tool_call>\n{"name": "lookup", "arguments": {"to'


@pytest.mark.parametrize(("reason", "text", "end"), [("length", CUT, "length"), ("stop", "No.", "stop")])
def test_bug_086_bug_088_the_finish_reason_agrees_with_the_message(
    frontend: Frontend, reason: str, text: str, end: str
) -> None:
    body = {k: v for k, v in bodies(ROWS["bug-086"])[0].items() if k != "model"}
    frontend.answers(Answer((text,), reason))
    assert frontend.post(body).json()["choices"][0]["finish_reason"] == end
    streamed = frontend.post({**body, "stream": True}).text
    assert f'"finish_reason":"{end}"' in streamed and '"finish_reason":"tool_calls"' not in streamed


@dataclass(frozen=True)
class Read:
    """How a reported text is read: the family, and what must come of it however it is cut."""

    family: str
    calls: list[tuple[str, Any]] = field(default_factory=list)
    content: str = ""
    reasoning: str = ""
    end: str = "tool_calls"
    thinks: bool = False
    inside: bool = False
    reason: str = "stop"
    properties: dict[str, Any] | None = None


def town(name: str) -> tuple[str, Any]:
    return ("lookup", {"town": name})


TYPED = {"n": {"type": "integer"}, "on": {"type": "boolean"}, "s": {"type": "string"}}
READ: dict[str, Read] = {
    "bug-107": Read("hermes", [town("Linz")]),
    "bug-108": Read("hermes", [town("Graz")], content="Sure."),
    "bug-109": Read("hermes", content="b", reasoning="a", end="stop", thinks=True),
    "bug-112": Read("hermes", [town("A"), town("B")]),
    "bug-117": Read("hermes", [("sum", {"rows": [{"v": 1}, {"v": 2}]})]),
    "bug-120": Read("hermes", [town("n" * 40), town("B")], content="First."),
    "bug-123": Read("llama3_json", [("log", {"message": "}A ] {"})]),
    "bug-124": Read("hermes", [("write", {"text": "use </tool_call> here"})]),
    "bug-125": Read("hermes", [("find", {"q": "it's o'clock"})]),
    "bug-126": Read("gemma4", [("pick", {"why": 'he said "no"'})]),
    "bug-129": Read("qwen_xml", [("set", {"n": 3, "on": True, "s": "42"})], properties=TYPED),
    "bug-136": Read("hermes", content='{"town":"Bern"}', reasoning='free text "{', end="stop", thinks=True),
    "bug-137": Read("hermes", content='{"town":"Bern"}', end="stop"),
    "bug-140": Read("hermes", content="42", reasoning="why", end="stop", thinks=True, inside=True),
    "bug-142": Read("hermes", reasoning="one two three", end="length", thinks=True, reason="length"),
    "bug-143": Read("hermes", reasoning="all of it", end="length", thinks=True, reason="length"),
    "bug-145": Read("hermes", [town("A")], reasoning="need it", thinks=True),
    "bug-146": Read("hermes", content='{"a":1}', reasoning="hm", end="stop", thinks=True),
    "bug-147": Read("gpt_oss", content='{"a":1}', reasoning="t", end="stop"),
}  # fmt: skip


def read_back(expected: Read, pieces: list[str]) -> Read:
    row = tool_format(expected.family)
    schemas = {name: {"type": "object", "properties": expected.properties} for name, _ in expected.calls}
    parser = CallParser(row, schemas if expected.properties else {})
    markers = row.reasoning if expected.thinks else None
    thoughts = None if markers is None else ReasoningSplitter(markers, expected.inside, parser.triggers)
    ids = itertools.count()
    reader, builder = ChoiceReader(0, parser, thoughts, lambda: f"c{next(ids)}"), MessageBuilder()
    for piece in pieces:
        for delta in reader.feed(Event(0, text=piece)):
            builder.add(delta)
    for delta in reader.feed(Event(0, finish_reason=expected.reason)):
        builder.add(delta)
    message = builder.to_dict()
    made = message.get("tool_calls", [])
    assert len({call["id"] for call in made}) == len(made)
    calls = [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in made]
    return Read(
        expected.family, calls, message["content"] or "", message.get("reasoning_content", ""),
        reader.finish_reason or "", expected.thinks, expected.inside, expected.reason, expected.properties,
    )  # fmt: skip


def cuts(text: str) -> list[list[str]]:
    """Whole, cut once at every place, and character by character."""
    return [[text], list(text), *([text[:at], text[at:]] for at in range(1, len(text)))]


@pytest.mark.parametrize("name", READ)
def test_a_reported_text_is_read_in_the_same_way_however_it_is_cut(name: str) -> None:
    given, expected = ROWS[name]["input"], READ[name]
    text = given.get("model_text") or given.get("content") or "".join(given.get("chunks", ()))
    for pieces in [*cuts(text), *([given["chunks"]] if "chunks" in given else [])]:
        assert read_back(expected, pieces) == expected, pieces


def streamed_calls(frontend: Frontend, text: str) -> list[dict[str, Any]]:
    tool = {"type": "function", "function": {"name": "lookup"}}
    frontend.answers(Answer(tuple(text)))
    lines = frontend.ask(stream=True, tools=[tool]).text.splitlines()
    chunks = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    return [call for chunk in chunks for call in chunk["choices"][0]["delta"].get("tool_calls", ())]


def test_bug_111_bug_112_bug_122_a_call_opens_once_and_then_only_adds_arguments(frontend: Frontend) -> None:
    deltas = streamed_calls(frontend, ROWS["bug-112"]["input"]["model_text"])
    opening = [d for d in deltas if "id" in d]
    assert [d["index"] for d in opening] == [0, 1] and len({d["id"] for d in opening}) == 2
    assert all(set(d) == {"index", "id", "type", "function"} and d["function"]["name"] == "lookup" for d in opening)
    rest = [d for d in deltas if "id" not in d]
    assert rest and all(set(d) == {"index", "function"} and set(d["function"]) == {"arguments"} for d in rest)


def test_bug_121_long_arguments_come_in_several_deltas_and_early(frontend: Frontend) -> None:
    text = json.dumps({"name": "lookup", "arguments": {"text": "word " * 800}})
    deltas = streamed_calls(frontend, f"<tool_call>\n{text}\n</tool_call>")
    assert len(deltas) > 100 and max(len(d["function"]["arguments"]) for d in deltas) < 200
