"""Whole and streamed answers are the same, however the engine cuts its text."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

from guided_engine.protocol import Event, TokenLogprob
from guided_frontend import chunks
from guided_frontend.chunks import ChoiceReader, Delta, MessageBuilder
from guided_frontend.reasoning import ReasoningSplitter
from guided_frontend.tool_calls import CallParser
from guided_grammar.formats import HERMES, THINK
from hypothesis import given
from hypothesis import strategies as st

CALL = '<tool_call>\n{"name": "f", "arguments": {"a": "é👩‍👩‍👧 \\" </tool_call>"}}\n</tool_call>'
PARTS = ["Hello ", "\n", "👩‍👩‍👧", "公司", CALL, "<tool_call>", "{", "</think>", "<think>", " ", CALL[:40]]


def reader(index: int, calls: bool, inside: bool) -> ChoiceReader:
    numbers = iter(range(1000))
    return ChoiceReader(
        index,
        CallParser(HERMES) if calls else None,
        ReasoningSplitter(THINK, inside) if inside else None,
        lambda: f"call_{index}_{next(numbers)}",
    )


def events(text: str, cuts: Iterable[int], finish: str) -> Iterator[Event]:
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    for start, end in pairwise(places):
        yield Event(0, text=text[start:end])
    yield Event(0, finish_reason=finish)


def message(read: ChoiceReader, stream: Iterable[Event]) -> tuple[dict[str, Any], str | None]:
    builder = MessageBuilder()
    for event in stream:
        for delta in read.feed(event):
            builder.add(delta)
    return builder.to_dict(), read.finish_reason


@given(
    st.lists(st.sampled_from(PARTS), max_size=8), st.lists(st.integers(0, 300), max_size=10),
    st.booleans(), st.booleans(), st.sampled_from(["stop", "length"]),
)  # fmt: skip
def test_f7_d12_the_message_does_not_depend_on_the_cuts(
    parts: list[str], cuts: list[int], calls: bool, inside: bool, finish: str
) -> None:
    text = "".join(parts)
    whole = message(reader(0, calls, inside), events(text, [], finish))
    assert message(reader(0, calls, inside), events(text, cuts, finish)) == whole
    assert message(reader(0, calls, inside), events(text, range(len(text)), finish)) == whole
    assert whole[1] == "length" if finish == "length" else whole[1] in ("stop", "tool_calls")
    assert (whole[1] == "tool_calls") <= bool(whole[0].get("tool_calls"))


def test_two_hundred_random_answers_stream_as_sums_of_their_deltas() -> None:
    rng = random.Random(7)
    for _ in range(200):
        text = "".join(rng.choice(PARTS) for _ in range(rng.randrange(8)))
        cuts = [rng.randrange(300) for _ in range(rng.randrange(20))]
        one, calls = reader(0, True, False), dict[int, dict[str, Any]]()
        content = ""
        for event in events(text, cuts, "stop"):
            for body in (delta.to_dict() for delta in one.feed(event)):
                content += body.get("content", "")
                for entry in body.get("tool_calls", []):
                    held = calls.setdefault(entry["index"], {"arguments": ""})
                    held |= {key: entry[key] for key in ("id", "type") if key in entry}
                    held["arguments"] += entry["function"]["arguments"]
        whole, _ = message(reader(0, True, False), events(text, [], "stop"))
        assert content == (whole["content"] or "")
        assert [(c["id"], c["arguments"]) for c in calls.values()] == [
            (c["id"], c["function"]["arguments"]) for c in whole.get("tool_calls", [])
        ]


def test_a_delta_never_names_one_index_twice_and_names_a_call_only_once() -> None:
    one = reader(0, True, False)
    bodies = [d.to_dict() for e in events(CALL + CALL, range(0, 200, 3), "stop") for d in one.feed(e)]
    entries = [body["tool_calls"] for body in bodies if "tool_calls" in body]
    assert all(len(entry) == 1 for entry in entries)
    assert [entry[0]["index"] for entry in entries if "id" in entry[0]] == [0, 1]


def test_logprobs_tell_the_bytes_of_half_a_character_and_finite_numbers() -> None:
    half = TokenLogprob(1, float("-inf"), (0xE5,), (TokenLogprob(2, -0.25, (0x41,)),))
    assert chunks.logprob(half) == {
        "token": "\ufffd",
        "logprob": -9999.0,
        "bytes": [0xE5],
        "top_logprobs": [{"token": "A", "logprob": -0.25, "bytes": [0x41]}],
    }


def test_usage_counts_the_prompt_once_and_every_choice() -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 5, "cached_tokens": 3}
    told = chunks.usage([Event(i, finish_reason="stop", usage=usage) for i in range(3)])
    assert (told["prompt_tokens"], told["completion_tokens"], told["total_tokens"]) == (7, 15, 22)
    assert told["prompt_tokens_details"] == {"cached_tokens": 3}


def test_an_event_is_one_line_of_json_that_keeps_its_text() -> None:
    raw = chunks.sse({"delta": Delta(content="a\n\u2028é").to_dict()})
    assert raw.startswith(b"data: {") and raw.endswith(b"}\n\n") and raw.count(b"\n") == 2
    assert json.loads(raw[6:]) == {"delta": {"content": "a\n\u2028é"}}
