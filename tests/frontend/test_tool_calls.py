from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

import pytest
from guided_frontend.json_scan import At, JsonScanner
from guided_frontend.tool_calls import CallArguments, CallEnd, CallParser, CallStart, Piece, TextPiece
from guided_grammar.format_rows import HERMES, LFM2, MINIMAX_M2, MISTRAL_V3
from guided_grammar.formats import ToolFormat
from hypothesis import given
from hypothesis import strategies as st

Read = tuple[str, list[tuple[str, str, bool]]]


def fold(pieces: list[Piece]) -> Read:
    """(content, [(name, arguments, is_complete)])."""
    content, calls = "", list[tuple[str, str, bool]]()
    for piece in pieces:
        if isinstance(piece, TextPiece):
            content += piece.text
        elif isinstance(piece, CallStart):
            calls.append((piece.name, "", False))
        elif isinstance(piece, CallArguments):
            calls[-1] = (calls[-1][0], calls[-1][1] + piece.text, False)
        else:
            assert isinstance(piece, CallEnd)
            calls[-1] = (*calls[-1][:2], True)
    return content, calls


def parse(*texts: str) -> Read:
    parser = CallParser(HERMES)
    pieces = [piece for text in texts for piece in parser.feed(text)]
    return fold(pieces + parser.finish())


def call(body: str) -> str:
    return f"<tool_call>\n{body}\n</tool_call>"


ADD = '{"name": "add", "arguments": {"a": [1, "}"], "b": "</tool_call>"}}'
ARGS = '{"a": [1, "}"], "b": "</tool_call>"}'
CASES: list[tuple[str, str, Read]] = [
    ("text only", " Hello <b>\n", (" Hello <b>\n", [])),
    ("one call", call(ADD), ("", [("add", ARGS, True)])),
    ("two calls", call(ADD) + "\n" + call(ADD), ("", [("add", ARGS, True)] * 2)),
    ("no blanks between", call(ADD) * 2, ("", [("add", ARGS, True)] * 2)),
    ("text around", f"Sure.\n{call(ADD)}\nDone.\n", ("Sure.\nDone.", [("add", ARGS, True)])),
    ("text on the same line", f"Sure {call(ADD)} done", ("Sure  done", [("add", ARGS, True)])),
    ("an opener and the end", "Sure.\n<tool_call>\n", ("Sure.\n", [])),
    ("text after a call only", f"{call(ADD)}\n\nDone.", ("Done.", [("add", ARGS, True)])),
    ("no newlines in the markup", f"<tool_call>{ADD}</tool_call>", ("", [("add", ARGS, True)])),
    ("missing closer", f"<tool_call>{ADD}", ("", [("add", ARGS, True)])),
    ("missing closer, then text", f"<tool_call>{ADD} And so", ("And so", [("add", ARGS, True)])),
    ("missing closer, then a call", f"<tool_call>{ADD}{call(ADD)}", ("", [("add", ARGS, True)] * 2)),
    ("arguments first", call('{"arguments": {"a": 1}, "name": "f"}'), ("", [("f", '{"a": 1}', True)])),
    ("parameters", call('{"name": "f", "parameters": {"a": 1}}'), ("", [("f", '{"a": 1}', True)])),
    ("arguments as text", call('{"name": "f", "arguments": "{\\"a\\": 1}"}'), ("", [("f", '{"a": 1}', True)])),
    ("no arguments", call('{"name": "f"}'), ("", [("f", "{}", True)])),
    ("null arguments", call('{"name": "f", "arguments": null}'), ("", [("f", "{}", True)])),
    ("extra keys", call('{"id": 7, "name": "f", "x": {"name": "g"}, "arguments": {}}'), ("", [("f", "{}", True)])),
    ("escaped name", call('{"name": "\\u0066", "arguments": {}}'), ("", [("f", "{}", True)])),
    ("not a call", "<tool_call>later</tool_call>", ("<tool_call>later</tool_call>", [])),
    ("no name", call('{"arguments": {}}'), (call('{"arguments": {}}'), [])),
    ("name is a number", call('{"name": 3, "arguments": {}}'), (call('{"name": 3, "arguments": {}}'), [])),
    ("arguments are a list", call('{"name": "f", "arguments": [1]}'), (call('{"name": "f", "arguments": [1]}'), [])),
    ("a broken call, then a good one", "<tool_call>{oops " + call(ADD), ("<tool_call>{oops", [("add", ARGS, True)])),
    ("trigger within a trigger", "<tool_<tool_call>" + ADD, ("<tool_", [("add", ARGS, True)])),
    ("cut in the trigger", "Well <tool_c", ("Well <tool_c", [])),
    ("cut before the name", '<tool_call>\n{"name": "ad', ('<tool_call>\n{"name": "ad', [])),
    ("cut in the arguments", '<tool_call>\n{"name": "add", "arguments": {"a": [1', ("", [("add", '{"a": [1', False)])),
    ("cut in the closer", call(ADD)[:-3], ("", [("add", ARGS, True)])),
]


@pytest.mark.parametrize(("text", "read"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_a_text_reads_as(text: str, read: Read) -> None:
    assert parse(text) == read


@pytest.mark.parametrize("text", [c[1] for c in CASES], ids=[c[0] for c in CASES])
def test_d12_the_result_does_not_depend_on_where_the_text_was_cut(text: str) -> None:
    whole = parse(text)
    assert parse(*text) == whole
    for cut in range(len(text)):
        assert parse(text[:cut], text[cut:]) == whole


@given(st.lists(st.sampled_from(["<tool_call>", "</tool_call>", "\n", " ", "x", "{", ADD, '{"name": "f"', "}"]), max_size=8),
       st.lists(st.integers(0, 200), max_size=6))  # fmt: skip
def test_any_text_at_any_cuts_reads_the_same_and_loses_nothing_but_markup(parts: list[str], cuts: list[int]) -> None:
    text = "".join(parts)
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    read = parse(*(text[a:b] for a, b in pairwise(places)))
    assert read == parse(text)
    if not read[1]:
        assert read[0] == re.sub(r"<tool_call>\s*\Z", "", text)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
                    lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(), v, max_size=3), max_leaves=8),
       st.booleans())  # fmt: skip
def test_the_scanner_accepts_json_and_ends_where_it_ends(value: Any, indented: bool) -> None:
    text = json.dumps({"v": value}, indent=1 if indented else None, ensure_ascii=indented)
    scanner = JsonScanner()
    states = [(scanner.feed(char), scanner.at is At.DONE) for char in text]
    assert all(ok for ok, _ in states) and [done for _, done in states].index(True) == len(text) - 1


@pytest.mark.parametrize(
    "text",
    ["{,", "{1", '{"a" 1', '{"a":,', "[1 2", "[1,]", "[}", "{]", '{"a":1,}', "[01", "[1.]", "[-]", "[tru ", "[nul]",
     '["\t', '["\\x', '["\\u12g', "[1e]", "{}x", "[+", '{"a":1:', "]"],
)  # fmt: skip
def test_the_scanner_stops_at_the_character_that_is_no_json(text: str) -> None:
    scanner = JsonScanner()
    assert [scanner.feed(char) for char in text] == [True] * (len(text) - 1) + [False]


@pytest.mark.parametrize(
    ("row", "text", "content"),
    [
        (MISTRAL_V3, '[TOOL_CALLS][{"name": "f", "arguments": {}}], {"name": "g", "arguments": {}}', ', {"name": "g", "arguments": {}}'),
        (LFM2, "<|tool_call_start|>[f()]<|tool_call_end|>, g(a=1)", ", g(a=1)"),
        (MINIMAX_M2, '<minimax:tool_call><invoke name="f"></invoke></minimax:tool_call><invoke name="g">', '<invoke name="g">'),
    ],
)  # fmt: skip
def test_after_the_end_of_a_section_nothing_is_a_call_without_its_opening_markup(
    row: ToolFormat, text: str, content: str
) -> None:
    parser = CallParser(row)
    assert fold([*parser.feed(text), *parser.finish()]) == (content, [("f", "{}", True)])
