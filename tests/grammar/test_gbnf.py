"""guided_grammar: llama.cpp's GBNF dialect."""

from __future__ import annotations

import random
from typing import Any

import pytest
from guided_grammar.errors import (
    GrammarError,
    InvalidConstraint,
    LimitExceeded,
    UnsatisfiableConstraint,
    UnsupportedConstraint,
)
from guided_grammar.gbnf import compile_gbnf
from guided_grammar.limits import Limits
from guided_testing.byte_tokenizer import accepts, byte_engine, compile_bytes
from guided_testing.ebnf import Matcher

JSON = r"""
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
# at most one blank
ws ::= | " " | "\n" [ \t]{0,20}
"""

CASES: dict[str, tuple[str, list[str], list[str]]] = {
    "any character": ("root ::= . .", ["ab", "é😀", "\n\0"], ["", "a", "abc"]),
    "empty first alternative": ('root ::= "a" x\nx ::= | "b"', ["a", "ab"], ["", "abb"]),
    "empty last alternative": ('root ::= "a" ("b" | )', ["a", "ab"], ["b"]),
    "empty rule": ('root ::= "a" nothing "b"\nnothing ::=', ["ab"], ["a", "b"]),
    "exact count": ("root ::= [ab]{2}", ["ab"], ["a", "aba"]),
    "at most": ('root ::= "ab"{,2}', ["", "ab", "abab"], ["ababab", "a"]),
    "at least": ('root ::= ("ab" | "c"){2,}', ["abc", "cccc"], ["", "c"]),
    "between, with blanks": ("root ::= [ab]{ 1 , 2 }", ["a", "bb"], ["", "aab"]),
    "none": ('root ::= "a"{0} "b"', ["b"], ["ab"]),
    "signs": ('root ::= "a"? "b"* "c"+', ["c", "abbcc"], ["", "aac", "ab"]),
    "signs on signs": ('root ::= ([x]*)* ("y"+)?', ["", "xx", "xyy"], ["yx"]),
    "class with ranges": ("root ::= [a-c0-]", ["a", "c", "0", "-"], ["d", "1", ""]),
    "negated class": (r"root ::= [^a-y\n]", ["z", "é"], ["a", "\n", ""]),
    "class over all planes": (r"root ::= [\u0000-\uFFFF]", ["a", "\uffff"], ["😀"]),
    "escapes in a class": (r'root ::= [\]\[\\"\t\-]', ["]", "[", "\\", '"', "\t", "-"], ["a"]),
    "a caret inside": ("root ::= [a^]", ["a", "^"], ["b"]),
    "hex escapes": (r'root ::= "\x41\u00e9\U0001F600" [\x41-\x43]', ["Aé😀B"], ["Aé😀D"]),
    "hex escape before hex digits": (r"root ::= [\x5Cbf]", ["\\", "b", "f"], ["\u5cbf"]),
    "a byte escape is a character": (r'root ::= "\xff"', ["ÿ"], []),
    "dashes and digits in names": ('root ::= my-rule 2nd\nmy-rule ::= "a"\n2nd ::= "b"', ["ab"], ["a"]),
    "comments": ('# one\nroot ::= "a" # two "x"\n  # three\n | "b"', ["a", "b"], ["x"]),
    "a hash in a literal": ('root ::= "#" [#]', ["##"], ["#"]),
    "alternatives on lines": ('root ::= "a"\n  | "b"\n  | "c"', ["a", "b", "c"], ["ab"]),
    "newlines in a group": ('root ::= (\n"a"\n|\n"b"\n)\n', ["a", "b"], ["ab"]),
    "line ends of Windows": ('root ::= a\r\na ::= "x"\r\n', ["x"], ["\r"]),
    "left recursion": ('root ::= root "+" n | n\nn ::= [0-9]', ["1", "1+2+3"], ["+1", "1+"]),
    "hidden left recursion": ('root ::= e root "a" | "b"\ne ::= "" | "c"', ["b", "cba", "baa"], ["a"]),
    "a self-recursive root": ('root ::= "{" root? "}"', ["{}", "{{}}"], ["{", "{}}"]),
    "ambiguity": ('root ::= root root | "a"', ["a", "aaaa"], ["", "b"]),
    "a rule defined after its use": ('root ::= b\nb ::= "x"', ["x"], []),
    "a dead alternative": ('root ::= "a" | dead\ndead ::= "b" dead', ["a"], ["b", "bb"]),
    "the last definition counts": ('root ::= x\nx ::= "a"\nx ::= "b"', ["b"], ["a"]),
    "json": (
        JSON,
        ["{}", '{"a": [1, -2.5e1, {"b":null}]}', '{"\\u00e9":"\\n"}'],
        ["[]", '{"a":01}', '{"a":"\n"}', "{"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_grammar_accepts_its_sentences_only(name: str) -> None:
    source, accepted, rejected = CASES[name]
    compiled = compile_bytes(compile_gbnf(source))
    assert [s for s in accepted if not accepts(compiled, s)] == []
    assert [s for s in rejected if accepts(compiled, s)] == []


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("", 'no rule named "root"'),
        ('rot ::= "a"', 'no rule named "root"'),
        ("root ::= a\na ::= b c", 'line 2, column 7: rule "b" is not defined'),
        ('root ::= "a\n\n', 'line 1, column 10: this " is never closed'),
        ("root ::= [a-z", r"line 1, column 10: this \[ is never closed"),
        ('root ::=\n  ("a" | "b"', r"line 2, column 3: this \( is never closed"),
        ('root ::= "a")', r"line 1, column 13: unexpected '\)'"),
        ("root ::= *", "line 1, column 10: nothing to repeat"),
        ('root ::= "a" | +', "line 1, column 16: nothing to repeat"),
        ("root ::= []", "line 1, column 10: this character class is empty"),
        ("root ::= [z-a]", "line 1, column 10: a character range is reversed"),
        ('root ::= "a"{3,2}', r"line 1, column 13: the bounds \{3,2\} are reversed"),
        ('root ::= "a"{,}', "line 1, column 13: expected a bound"),
        ('root ::= "a"{x}', "line 1, column 13: expected a bound"),
        ('root ::= "a"{2 3}', "line 1, column 13: expected a bound"),
        (r'root ::= "\q"', r"line 1, column 11: unknown escape \\q"),
        (r'root ::= "\x4"', r"line 1, column 11: unknown escape \\x4"),
        (r'root ::= "\U00110000"', r"line 1, column 11: U\+110000 is not a character"),
        (r'root ::= "\ud800"', r"line 1, column 11: U\+D800 is not a character"),
        ('root = "a"', "line 1, column 1: expected ::= after the rule name"),
        ('::= "a"', "line 1, column 1: expected a rule name"),
        ('root ::= "a" $', r"line 1, column 14: unexpected '\$'"),
        (None, "must be a string, got NoneType"),
    ],
)
def test_a_malformed_grammar_is_refused_with_line_and_column(source: Any, message: str) -> None:
    with pytest.raises(InvalidConstraint, match=message) as caught:
        compile_gbnf(source)
    assert caught.value.keyword == "gbnf"


@pytest.mark.parametrize("source", ["root ::= <think>", "root ::= <[1000]>", 'root ::= "a" !<[1]>*'])
def test_references_to_tokens_are_unsupported(source: str) -> None:
    with pytest.raises(UnsupportedConstraint, match="references to tokens"):
        compile_gbnf(source)


@pytest.mark.parametrize("source", ["root ::= root", 'root ::= "a" root', "root ::= a\na ::= b\nb ::= a"])
def test_a_grammar_without_a_sentence_is_unsatisfiable(source: str) -> None:
    with pytest.raises(UnsatisfiableConstraint):
        compile_gbnf(source)


def test_16_kib_are_accepted_and_one_byte_more_is_not() -> None:
    source = 'root ::= "a" # '
    source += "é" * ((16_384 - len(source)) // 2)
    source += " " * (16_384 - len(source.encode()))
    assert accepts(compile_gbnf(source), "a")
    with pytest.raises(LimitExceeded, match="grammar bytes limit is 16384, got 16385"):
        compile_gbnf(source + " ")


@pytest.mark.parametrize(
    "source", ['root ::= "a"{65537}', 'root ::= "a"{0,99999999999999}', "root ::= " + "(" * 200 + '"a"' + ")" * 200]
)
def test_bounds_and_nesting_are_limited(source: str) -> None:
    with pytest.raises(LimitExceeded) as caught:
        compile_gbnf(source)
    assert caught.value.keyword == "gbnf"


def test_repetitions_that_expand_over_the_limit_are_refused() -> None:
    with pytest.raises(LimitExceeded, match="emitted grammar bytes"):
        compile_gbnf('root ::= (("ab"{0,3000}){0,3000}){0,3000}', Limits(emitted_bytes=50_000))


@pytest.mark.parametrize(
    "source", ["root ::= " + "a" * 10, "\x00", "root ::= \x00", "root ::= [\x00]", '"', "(", "é ::= a"]
)
def test_any_text_is_answered_by_a_grammar_or_a_grammar_error(source: str) -> None:
    try:
        assert compile_gbnf(source).startswith("root ::=")
    except GrammarError as error:
        assert error.reason


PIECES = [
    *(
        "root",
        "a",
        "b",
        "::=",
        "\n",
        '"x"',
        r'"\n"',
        "[a-c]",
        "[^x]",
        r"[\x00-\xff]",
        ".",
        "*",
        "+",
        "?",
        "{2}",
        "{,3}",
    ),
    *("{1,}", "{0,2}", "(", ")", "|", "#c\n", '"é😀"', "[é-日]", r'"\x00"', '""', r"[\]\-^]"),
]


def test_whatever_is_not_refused_compiles_to_masks() -> None:
    num_compiled = 0
    for seed in range(1500):
        source = random.Random(seed)
        bodies = (" ".join(source.choices(PIECES, k=source.randint(0, 7))) for _ in range(3))
        grammar = "".join(f"{name} ::= {body}\n" for name, body in zip(("root", "a", "b"), bodies, strict=True))
        try:
            ebnf = compile_gbnf(grammar)
        except GrammarError:
            continue
        byte_engine().session(compile_bytes(ebnf))
        num_compiled += 1
    assert num_compiled > 100


LOOPS = [
    ("group", 'root ::= ([ab] | "c" "d")* "."', [".", "a.", "acdb."], ["", "a", "c.", "ac."]),
    ("rule", 'root ::= x+ "."\nx ::= [ab] | "c" "d"', ["a.", "cd.", "cda."], [".", "c."]),
    ("rule in a rule", 'root ::= x*\nx ::= y | "c" y\ny ::= [ab]', ["", "a", "cab"], ["c", "ac"]),
    ("at least two", 'root ::= ([ab] | "cd"){2,} "."', ["ab.", "cda.", "abab."], ["a.", "cd.", "."]),
    ("bounded", 'root ::= ([ab] | "cd"){1,2} "."', ["a.", "acd."], ["aaa.", "."]),
    ("two in a row", 'root ::= ([ab] | "cd")* ([bc] | "ef")*', ["", "abc", "cdef", "abcef"], ["efa", "e"]),
    ("inside of a loop", 'root ::= ("(" ([ab] | "cd")* ")" | [x])*', ["", "()x(a)", "(cd)(ab)"], ["(", "(c)", "a"]),
    ("of what may be empty", 'root ::= ([a] | "b"?)* "."', [".", "a.", "bab."], ["", "c."]),
    ("of itself", 'root ::= ([a] | "(" root ")")*', ["", "a(a)", "(())"], ["(", ")("]),
]


@pytest.mark.parametrize(("source", "accepted", "rejected"), [x[1:] for x in LOOPS], ids=[x[0] for x in LOOPS])
def test_a_loop_means_what_it_says(source: str, accepted: list[str], rejected: list[str]) -> None:
    matcher = Matcher(compile_gbnf(source))
    assert {text: matcher.accepts(text) for text in accepted + rejected} == dict.fromkeys(
        accepted, True
    ) | dict.fromkeys(rejected, False)


def test_a_string_of_characters_and_escapes_repeats_no_rule() -> None:
    escape = r""""\\" (["\\bfnrt] | "u" hex hex)"""
    text = compile_gbnf(f"""root ::= "\\"" char* "\\""\nchar ::= [^"\\\\] | {escape}\nhex ::= [0-9a-f]""")
    assert "*" not in text and "+" not in text
