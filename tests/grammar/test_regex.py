"""Regular expressions: verdicts, refusals, and the texts that the emitted grammar accepts."""

from __future__ import annotations

import itertools
import json
import re
import time
from pathlib import Path

import pytest
from guided_grammar import regex
from guided_grammar.budget import Budget
from guided_grammar.emit import to_ebnf
from guided_grammar.errors import InvalidConstraint, LimitExceeded, UnsatisfiableConstraint, UnsupportedConstraint
from guided_grammar.ir import Rules
from guided_grammar.limits import Limits
from guided_grammar.schema.strings import Strings
from guided_testing.ebnf import Matcher
from hypothesis import given, settings
from hypothesis import strategies as st

_WIDE = Limits(automaton_bytes=Limits.pattern_automaton_bytes)
CORPUS = Path(__file__).parents[3] / "shared/data/regex/regex.jsonl"


def search(pattern: str, value: str) -> bool:
    return regex.search_language(pattern, Budget()).contains(value)


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("b", ["abc", "b"], ["", "ac"]),
        ("^a|b$", ["ax", "xb", "ab"], ["xa", "bx"]),
        ("^$", [""], ["a"]),
        ("a^b", [], ["ab", "a\nb"]),
        ("(^|x)a", ["a", "xab"], ["ya"]),
        (r"\bcat\b", ["cat", "a cat", "cat-nap"], ["cats", "_cat", "concat"]),
        (r"\Bcat", ["concat"], ["cat", " cat"]),
        (r"^\b$", [], ["", "a"]),
        (r"^\B$", [""], ["a"]),
        (r"^(?:\b|x)*a$", ["a", "xa"], ["b"]),
        ("^.$", ["é", "😀", "\r"[:0] + "a"], ["\n", "\u2028", "ab"]),
        (r"^[^]$", ["\n", "a"], [""]),
        ("^[]$", [], ["", "a"]),
        (r"^\p{Lu}\p{L}+$", ["Élan", "Ab"], ["ab", "A1"]),
        (r"^\P{Letter}$", ["1", "-"], ["a", "é"]),
        (r"^[\p{Nd}x]+$", ["1٣x"], ["y"]),
        (r"^\p{Script=Greek}\p{sc=Cyrl}\p{gc=Nd}$", ["αж5"], ["aж5", "αa5"]),
        (r"^\p{Script_Extensions=Greek}$", ["α", "\u0342"], ["a"]),
        (r"^\p{Script=Greek}$", ["α"], ["\u0345"]),
        (r"^\P{scx=Deva}+$", ["ab"], ["a\u0905"]),
        (r"^\p{Lowercase}\p{Upper}\p{Alphabetic}\p{Emoji}\p{ID_Start}$", ["ªÉé😀x"], ["AÉé😀x", "aÉé😀1"]),
        (r"^\u{1F600}\uD83D\uDE00\x41\cJ\0$", ["😀😀A\n\0"], [""]),
        (r"^[\w-.]+$", ["a-b.c"], ["a b"]),
        (r"^[\b\-\]]+$", ["\b-]"], ["b"]),
        (r"^\_\-\/\'$", ["_-/'"], [""]),
        ("^a{2}b{1,}c{0,1}$", ["aab", "aabbc"], ["ab", "aabcc"]),
        ("^x{,2}$", ["x{,2}"], ["x"]),
        ("^a{$", ["a{"], ["a"]),
        ("^(?<year>a+?)b??$", ["a", "aab"], ["b"]),
        (r"^\s\S\d\D\w\W$", ["\u3000a1a_-"], ["aa1a_-", " a٣a_-"]),
        ("^(a|b|)+$", ["", "ab"], ["c"]),
    ],
)
def test_a_pattern_searches_with_ecmascript_meaning(pattern: str, matching: list[str], other: list[str]) -> None:
    assert {s: search(pattern, s) for s in matching + other} == dict.fromkeys(matching, True) | dict.fromkeys(
        other, False
    )


@pytest.mark.parametrize(
    ("pattern", "error", "says"),
    [
        ("^x(?!a)", UnsupportedConstraint, "look-around is not regular: offset 4"),
        ("(?!a)b", UnsupportedConstraint, "look-around is not regular: offset 2"),
        ("^(?!a)b|c", UnsupportedConstraint, "look-around is not regular: offset 3"),
        ("^(?!a(?=b))c", UnsupportedConstraint, "look-around is not regular"),
        ("^(?!a)?b", UnsupportedConstraint, "look-around is not regular: offset 3"),
        ("(?<=a)b", UnsupportedConstraint, "look-around"),
        (r"(a)\1", UnsupportedConstraint, "back-reference"),
        (r"\p{Klingon}", UnsupportedConstraint, "is not known"),
        (r"\p{Script=Klingon}", UnsupportedConstraint, "is not known"),
        (r"\p{Script=greek}", UnsupportedConstraint, "is not known"),
        (r"\p{lowercase}", UnsupportedConstraint, "is not known"),
        (r"\p{Block=Basic_Latin}", UnsupportedConstraint, "is not known"),
        (r"\p{gc=Lowercase}", UnsupportedConstraint, "is not known"),
        ("(a", InvalidConstraint, "missing )"),
        ("a)", InvalidConstraint, "unmatched )"),
        ("[a", InvalidConstraint, "missing ]"),
        ("a**", InvalidConstraint, "nothing to repeat"),
        ("a{3,2}", InvalidConstraint, "numbers out of order"),
        ("[z-a]", InvalidConstraint, "range out of order"),
        ("(?i)a", InvalidConstraint, "invalid group"),
        (r"\Q", InvalidConstraint, "unknown escape"),
        ("a{65537}", LimitExceeded, "regex repetition limit is 65536, got 65537"),
        ("(" * 101 + ")" * 101, LimitExceeded, "regex nesting"),
    ],
)
def test_what_cannot_be_enforced_is_refused_with_a_place(pattern: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=re.escape(says)) as caught:
        regex.search_language(pattern, Budget(), "/properties/a")
    assert (caught.value.keyword, caught.value.path) == ("pattern", "/properties/a")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("[0-9]{4}-[0-9]{2}", ["2024-05"], ["2024-05x", "x2024-05", ""]),
        (r"\A(?P<n>a)\z", ["a"], ["aa"]),
        (r"\a+", ["\a"], ["a"]),
        ("[[:alpha:][:digit:]_]+", ["a1_"], ["-"]),
        ("[[:^space:]]+", ["ab"], ["a b"]),
        ("^a$|b", ["a", "b"], ["ab"]),
        ("é+", ["é", "éé"], ["e"]),
        ("", [""], ["a"]),
        (" the [a-z]+", [" the cat"], ["the cat"]),
        ('"\\\\\n\0', ['"\\\n\0'], ['"']),
    ],
)
def test_guided_regex_matches_the_whole_text(pattern: str, matching: list[str], other: list[str]) -> None:
    matcher = Matcher(regex.compile_regex(pattern))
    assert {s: matcher.accepts(s) for s in matching + other} == dict.fromkeys(matching, True) | dict.fromkeys(
        other, False
    )


def test_guided_regex_of_4096_bytes_is_accepted_and_of_4097_refused() -> None:
    assert Matcher(regex.compile_regex("é" * 2048)).accepts("é" * 2048)
    with pytest.raises(LimitExceeded, match="regex bytes limit is 4096, got 4098"):
        regex.compile_regex("é" * 2049)


def test_an_automaton_past_the_limit_is_refused_at_once_naming_regex_and_limit() -> None:
    start = time.process_time()
    with pytest.raises(LimitExceeded) as caught:
        regex.compile_regex("(a|b)*a(a|b){17}")
    assert time.process_time() - start < 2
    assert "(a|b)*a(a|b){17}" in str(caught.value) and "262144" in str(caught.value)
    assert caught.value.keyword == "guided_regex"


def test_the_automaton_limit_is_configurable() -> None:
    with pytest.raises(LimitExceeded, match="bytes limit is 500"):
        regex.compile_regex("a{100}", Limits(automaton_bytes=500))


def test_a_regex_without_texts_is_unsatisfiable() -> None:
    with pytest.raises(UnsatisfiableConstraint):
        regex.compile_regex("a^b")


LEAVES = st.sampled_from(["a", "b", "c", ".", "[ab]", "[^a]", "\\w", "\\W", "^", "$", "\\b", "\\B", ""])


def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    loops = st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{0,2}", "{1,}", "*?"]))
    return (
        st.tuples(inner, inner).map("".join)
        | st.tuples(inner, inner).map(lambda p: f"(?:{p[0]}|{p[1]})")
        | loops.map(lambda p: f"(?:{p[0]}){p[1]}")
    )


TEXTS = [
    "",
    *"abc-\n",
    "aa",
    "ab",
    "ba",
    "cb",
    "a-",
    "-a",
    "abc",
    "aba",
    "a-b",
    "bca",
    "aab",
    "-ab-",
    "ab\nc",
    "cabc",
    "abab",
]


@settings(max_examples=80, deadline=None)
@given(st.recursive(LEAVES, grow, max_leaves=8))
def test_random_regexes_agree_with_python(pattern: str) -> None:
    # Python's `$` also matches before a final newline, and before 3.14 its `\B` not the empty text.
    python = re.compile(pattern.replace("$", r"\Z"), re.ASCII)
    dfa, whole = regex.search_language(pattern, Budget()), regex.full_language(pattern, Budget(), dialect="ecma")
    for text in TEXTS[1:] if "\\B" in pattern else TEXTS:
        assert dfa.contains(text) == bool(python.search(text)), text
        assert whole.contains(text) == bool(python.fullmatch(text)), text


@settings(max_examples=25, deadline=None)
@given(st.recursive(LEAVES, grow, max_leaves=6))
def test_emitted_json_texts_are_exactly_those_of_the_language(pattern: str) -> None:
    strings = Strings.pattern(pattern, Budget())
    if strings.is_empty():
        return
    rules = Rules()
    matcher = Matcher(to_ebnf(rules, strings.emit(rules, Budget())))
    for text in [*TEXTS, 'a"b', "a\\b", "a\tb"]:
        assert matcher.accepts(json.dumps(text)) == strings.contains(text), text
    assert not matcher.accepts('"a\nb"') and not matcher.accepts('"a') and not matcher.accepts("a")


@pytest.mark.corpus
def test_every_verdict_of_the_corpus_is_right() -> None:
    if not CORPUS.exists():
        pytest.skip("corpus not present")
    refused = []
    for row in map(json.loads, CORPUS.read_text().split("\n")[:-1]):
        try:
            dfa = regex.search_language(row["pattern"], Budget())
            whole = regex.full_language(row["pattern"], Budget(_WIDE), dialect="ecma")
        except UnsupportedConstraint as error:
            refused.append(error.reason)
            continue
        for case in row["cases"]:
            verdict = (dfa.contains(case["s"]), whole.contains(case["s"]))
            assert verdict == (case["search"], case["full"]), (row["id"], case["s"])
    assert all("look-around" in reason or "back-reference" in reason for reason in refused)


@pytest.mark.corpus
def test_a_sample_of_the_corpus_through_xgrammar() -> None:
    if not CORPUS.exists():
        pytest.skip("corpus not present")
    for row in list(map(json.loads, CORPUS.read_text().split("\n")[:-1]))[::6]:
        try:
            strings = Strings.pattern(row["pattern"], Budget())
        except UnsupportedConstraint:
            continue
        rules = Rules()
        matcher = Matcher(to_ebnf(rules, strings.emit(rules, Budget())))
        for case in row["cases"]:
            assert matcher.accepts(json.dumps(case["s"], ensure_ascii=False)) == case["search"], (row["id"], case["s"])


AHEAD = [
    "^(?!b)",
    "^(?!ab)[ab]+$",
    "^(?=[^b]+$)(?!a+$)(?:a|c)+$",
    "^(?!.*c)^(.*[^a]+.*)$",
    "^(?!^a|bc).*",
    "^(?!a$)(?=a)",
    r"^(?![|(]|\(|[)\]b]).b",
    "^(?=a|b)(?!(a)(b))[abc]{1,2}$",
    "^(?!)a",
    "^(?=)a",
]
SHORT = ["".join(letters) for n in range(4) for letters in itertools.product("abc", repeat=n)] + [
    "|b",
    "(b",
    ")b",
    "]b",
]


@pytest.mark.parametrize("pattern", AHEAD)
def test_look_ahead_at_the_beginning_is_a_condition_on_the_whole(pattern: str) -> None:
    found, whole = regex.search_language(pattern, Budget()), regex.full_language(pattern, Budget())
    assert {s: found.contains(s) for s in SHORT} == {s: bool(re.search(pattern, s)) for s in SHORT}
    assert {s: whole.contains(s) for s in SHORT} == {s: bool(re.fullmatch(pattern, s)) for s in SHORT}
