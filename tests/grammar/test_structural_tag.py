"""Structural tags: what is enforced, and what is refused by path."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from guided_grammar.compiler import compile_spec
from guided_grammar.errors import GrammarError, InvalidConstraint, LimitExceeded, UnsupportedConstraint
from guided_grammar.limits import Limits
from guided_grammar.spec import GrammarSpec, Kind
from guided_testing.ebnf import Matcher

CORPUS = Path(__file__).parents[2].parent / "shared/data/xgrammar/structural_tag.jsonl"
INTEGER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
TEXT, ANY = {"type": "const_string", "value": "x"}, {"type": "any_text"}
DOCUMENT = {"type": "json_schema", "json_schema": INTEGER}


def compiled(value: Any) -> str:
    return compile_spec(GrammarSpec(Kind.STRUCTURAL_TAG, value)).text


def tag(content: Any, begin: str = "<a>", end: Any = "</a>") -> dict[str, Any]:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def triggered(*tags: Any, **options: Any) -> dict[str, Any]:
    return {"type": "triggered_tags", "triggers": ["<"], "tags": list(tags), **options}


def separated(*tags: Any, **options: Any) -> dict[str, Any]:
    return {"type": "tags_with_separator", "separator": ", ", "tags": list(tags), **options}


CASES: list[tuple[str, Any, list[str], list[str]]] = [
    ("const_string", TEXT, ["x"], ["", "xx"]),
    ("json_schema", DOCUMENT, ['{"n": 3}'], ['{"n": "x"}', "3"]),
    ("regex", {"type": "regex", "pattern": "a|b+"}, ["a", "bb"], ["ab", ""]),
    ("grammar", {"type": "grammar", "grammar": 'root ::= "a" root?'}, ["aaa"], ["b", ""]),
    ("any_text", ANY, ["", "<x> é\n"], []),
    ("any_text_without", {"type": "any_text", "excludes": ["no"]}, ["yes n o"], ["a no"]),
    ("tag", tag(DOCUMENT), ['<a>{"n": 1}</a>'], ['<a>{"n": 1}', '{"n": 1}', '<a>{"n": 1}</a> ']),
    ("tag_of_text_ends_at_the_first_end", tag(ANY), ["<a></a>", "<a>x<b></a>"], ["<a>x", "<a>x</a></a>"]),
    ("an_end_that_overlaps_itself", tag(ANY, "(", "aa"), ["(aa", "(baa"], ["(aaa", "(a"]),
    ("one_of_two_ends", tag(ANY, "(", [")", "]"]), ["(x)", "(x]"], ["(x", "(x])"]),
    ("text_without_inside_a_tag", tag({"type": "any_text", "excludes": ["b"]}), ["<a>x</a>"], ["<a>b</a>"]),
    ("an_empty_end", tag(TEXT, "<a>", ""), ["<a>x"], ["<a>x</a>", "<a>"]),
    ("sequence", {"type": "sequence", "elements": [TEXT, tag(DOCUMENT)]}, ['x<a>{"n": 0}</a>'], ['<a>{"n": 0}</a>']),
    ("text_up_to_a_fixed_text", {"type": "sequence", "elements": [ANY, {"type": "const_string", "value": "--"}, TEXT]},
     ["ab--x", "--x"], ["ab--", "a--b--x"]),
    ("or", {"type": "or", "elements": [TEXT, DOCUMENT]}, ["x", '{"n": 1}'], ['x{"n": 1}']),
    ("an_or_before_an_end", tag({"type": "or", "elements": [ANY, TEXT]}), ["<a>x</a>", "<a>yy</a>"], ["<a>x"]),
    ("triggered", triggered(tag(DOCUMENT)), ["", "Hi", 'Hi <a>{"n": 1}</a> and <a>{"n": 2}</a>.'],
     ["a < b", 'Hi <a>{"n": "x"}</a>', "Hi <a>"]),
    ("triggered_once", triggered(tag(TEXT), stop_after_first=True), ["Hi", "Hi <a>x</a>"], ["<a>x</a>."]),
    ("triggered_at_least_once", triggered(tag(TEXT), at_least_one=True), ["<a>x</a>", "<a>x</a> y"], ["", "y <a>x</a>"]),
    ("exactly_one", triggered(tag(TEXT), at_least_one=True, stop_after_first=True), ["<a>x</a>"], ["", "<a>x</a>."]),
    ("a_trigger_without_a_tag", {**triggered(tag(TEXT)), "triggers": ["<", "["]}, ["<a>x</a>"], ["a [b"]),
    ("separated", separated(tag(TEXT)), ["", "<a>x</a>", "<a>x</a>, <a>x</a>"], ["<a>x</a>,<a>x</a>", "<a>x</a>, "]),
    ("separated_once", separated(tag(TEXT), stop_after_first=True), ["", "<a>x</a>"], ["<a>x</a>, <a>x</a>"]),
    ("separated_at_least_once", separated(tag(TEXT), at_least_one=True), ["<a>x</a>"], [""]),
]  # fmt: skip


@pytest.mark.parametrize(("value", "accept", "reject"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_a_format_allows_exactly_its_texts(value: Any, accept: list[str], reject: list[str]) -> None:
    matcher = Matcher(compiled({"format": value}))
    assert [text for text in accept if not matcher.accepts(text)] == []
    assert [text for text in reject if matcher.accepts(text)] == []


def test_the_older_spelling_is_free_text_with_tagged_documents() -> None:
    structures = [{"begin": "<f=a>", "schema": INTEGER, "end": "</f>"}, {"begin": "<f=b>", "schema": {}, "end": "</f>"}]
    matcher = Matcher(compiled({"type": "structural_tag", "structures": structures, "triggers": ["<f="]}))
    assert all(map(matcher.accepts, ["", "no tags", 'a <f=a>{"n": 1}</f> b <f=b>[true]</f>']))
    assert not any(map(matcher.accepts, ["<f=c>1</f>", '<f=a>{"n": ""}</f>', "<f=b>"]))


REFUSED: list[tuple[str, Any, type[GrammarError], str]] = [
    ("nothing", {}, InvalidConstraint, "/structures"),
    ("no_object", [], InvalidConstraint, ""),
    ("both_spellings", {"format": TEXT, "triggers": ["<"]}, InvalidConstraint, ""),
    ("unknown_key", {"format": TEXT, "stop": 1}, UnsupportedConstraint, "/stop"),
    ("unknown_format", {"format": {"type": "token"}}, UnsupportedConstraint, "/format"),
    ("a_style_of_ours", {"format": {**DOCUMENT, "style": "qwen_xml"}}, UnsupportedConstraint, "/format/style"),
    ("a_token_budget", {"format": {**ANY, "max_tokens": 3}}, UnsupportedConstraint, "/format/max_tokens"),
    ("schema", {"format": tag({"type": "json_schema", "json_schema": {"type": 3}})}, InvalidConstraint,
     "/format/content/json_schema"),
    ("regex", {"format": {"type": "regex", "pattern": "("}}, InvalidConstraint, "/format/pattern"),
    ("grammar", {"format": {"type": "grammar", "grammar": "start ::= x"}}, InvalidConstraint, "/format/grammar"),
    ("text_before_a_document", {"format": {"type": "sequence", "elements": [ANY, DOCUMENT]}}, UnsupportedConstraint,
     "/format/elements/1"),
    ("text_in_a_choice_before_more", {"format": {"type": "sequence", "elements": [{"type": "or", "elements": [ANY]}, TEXT]}},
     UnsupportedConstraint, "/format/elements/0/elements/0"),
    ("text_without_an_end_before_more", {"format": triggered(tag(ANY, "<a>", ""))}, UnsupportedConstraint,
     "/format/tags/0/content"),
    ("tags_before_more", {"format": {"type": "sequence", "elements": [triggered(tag(TEXT)), TEXT]}}, UnsupportedConstraint,
     "/format/elements/0"),
    ("a_tag_without_a_trigger", {"format": triggered(tag(TEXT, "[a]"))}, InvalidConstraint, "/format/tags/0/begin"),
    ("no_tags", {"format": triggered()}, InvalidConstraint, "/format/tags"),
    ("no_end", {"format": {"type": "tag", "begin": "a", "content": TEXT}}, InvalidConstraint, "/format/end"),
    ("a_structure_without_an_end", {"structures": [{"begin": "<a>", "schema": {}}], "triggers": ["<"]}, InvalidConstraint,
     "/structures/0/end"),
    ("a_structures_schema", {"structures": [{"begin": "<a>", "schema": {"type": 3}, "end": "e"}], "triggers": ["<"]}, InvalidConstraint,
     "/structures/0/schema"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "kind", "path"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_what_cannot_be_said_exactly_is_refused_by_path(value: Any, kind: type[GrammarError], path: str) -> None:
    with pytest.raises(kind) as refused:
        compiled(value)
    assert refused.value.path.startswith(path) and refused.value.keyword


def test_a_tag_larger_than_a_schema_may_be_is_refused() -> None:
    with pytest.raises(LimitExceeded, match="schema bytes limit is 50"):
        compile_spec(GrammarSpec(Kind.STRUCTURAL_TAG, {"format": DOCUMENT}), Limits(schema_bytes=50))


@pytest.mark.corpus
def test_xgrammars_own_cases_are_judged_as_there_or_refused() -> None:
    if not CORPUS.is_file():
        pytest.skip("corpus not present")
    judged, wrong = 0, []
    for row in map(json.loads, CORPUS.read_text(encoding="utf-8").splitlines()):
        try:
            matcher = Matcher(compiled(row["structural_tag"]))
        except GrammarError:
            continue
        judged += 1
        wrong += [(row["id"], text) for text in row["accept"] if not matcher.accepts(text)]
        wrong += [(row["id"], text) for text in row["reject"] if matcher.accepts(text)]
    assert wrong == [] and judged >= 49
