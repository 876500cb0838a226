"""Grammar expressions through xgrammar: what an expression means is what the emitted EBNF accepts."""

from __future__ import annotations

import pytest
from guided_grammar.emit import to_ebnf
from guided_grammar.errors import LimitExceeded, UnsatisfiableConstraint
from guided_grammar.ir import EMPTY, NOTHING, Chars, Dispatch, Expr, Rules, Text, alt, chars, opt, repeat, seq, text
from guided_grammar.limits import Limits
from guided_testing.ebnf import Matcher

AB = chars([(97, 98)])
CASES: list[tuple[Expr, list[str], list[str]]] = [
    (text('a"\\\n\r\t\x01\x7f\x85é😀'), ['a"\\\n\r\t\x01\x7f\x85é😀'], ["a", ""]),
    (text("a\0b"), ["a\0b"], ["a", "ab"]),
    (repeat(text("\0"), 2, 2), ["\0\0"], ["\0", "\0\0\0"]),
    (EMPTY, [""], ["a"]),
    (
        chars([(0, 0x1F), (0x22, 0x22), (0x2D, 0x2D), (0x5B, 0x5E)]),
        ["\0", "\n", '"', "-", "[", "\\", "]", "^"],
        [" ", "_", "a"],
    ),
    (chars([(0, 0x10FFFF)]), ["\0", "\ud7ff", "\ue000", "\U0010ffff", "é"], ["\ud800", "\udfff", ""]),
    (alt(text("ab"), text("a"), text("c")), ["ab", "a", "c"], ["b", ""]),
    (seq(opt(text("x")), alt(text("yy"), text("zz"))), ["xyy", "zz"], ["x", "yyzz"]),
    (repeat(AB, 2, 3), ["ab", "bbb"], ["a", "abab"]),
    (repeat(AB, 2, None), ["ab", "bbbb"], ["a"]),
    (repeat(text("ab"), 0, None), ["", "abab"], ["aba"]),
    (repeat(repeat(AB, 0, None), 0, None), ["", "ab"], ["c"]),
    (repeat(repeat(text("ab"), 1, None), 0, None), ["", "abab"], ["aba"]),
    (chars([(0x5C, 0x5C), (0x62, 0x62), (0x66, 0x66)]), ["\\", "b", "f"], ["\u5cbf"]),
    (repeat(text("ab"), 1, None), ["ab", "abab"], [""]),
    (repeat(text("ab"), 2, 4), ["abab", "ababab", "abababab"], ["ab", "ababababab", "aba"]),
    (repeat(text("ab"), 2, None), ["abab", "ababab"], ["ab"]),
    (repeat(text("ab"), 0, 1), ["", "ab"], ["abab"]),
    (seq(repeat(text("ab"), 0, 2), text("c")), ["c", "abc", "ababc"], ["abababc"]),
    (alt(seq(text("a"), NOTHING), text("bb")), ["bb"], ["a"]),
]


@pytest.mark.parametrize(("expr", "accepted", "rejected"), CASES)
def test_emitted_text_accepts_the_language(expr: Expr, accepted: list[str], rejected: list[str]) -> None:
    matcher = Matcher(to_ebnf(Rules(), expr))
    assert {s: matcher.accepts(s) for s in accepted + rejected} == dict.fromkeys(accepted, True) | dict.fromkeys(
        rejected, False
    )


def test_a_self_recursive_root_is_wrapped() -> None:
    rules = Rules()
    nest = rules.reserve("nest")
    rules.define(nest, seq(text("{"), opt(nest), text("}")))
    ebnf = to_ebnf(rules, nest)
    assert "root" not in ebnf.replace("root ::=", "")
    assert Matcher(ebnf).accepts("{{}}") and not Matcher(ebnf).accepts("{{}")


def test_rules_and_options_that_produce_nothing_are_dropped() -> None:
    rules = Rules()
    endless = rules.reserve("endless")
    rules.define(endless, seq(text("a"), endless))
    ebnf = to_ebnf(rules, alt(endless, text("bb")))
    assert endless.name not in ebnf and Matcher(ebnf).accepts("bb")
    with pytest.raises(UnsatisfiableConstraint):
        to_ebnf(rules, endless)


def test_equal_expressions_share_a_rule() -> None:
    rules = Rules()
    assert rules.add(seq(text("a"), AB)) == rules.add(seq(text("a"), AB))
    assert len(rules) == 1


def test_normal_forms() -> None:
    assert seq(text("a"), EMPTY, seq(text("b"), text("c"))) == Text("abc")
    assert alt(text("b"), text("a")) == AB == Chars(((97, 98),))
    assert seq(text("a"), NOTHING) == NOTHING == alt()
    assert repeat(NOTHING, 0, None) == EMPTY == repeat(AB, 0, 0)


def test_an_expansion_past_the_limit_is_refused() -> None:
    with pytest.raises(LimitExceeded, match="emitted grammar bytes limit is 1000"):
        to_ebnf(Rules(), repeat(text("ab"), 0, 10_000), Limits(emitted_bytes=1000))


def test_free_text_takes_a_trigger_only_with_what_follows_it() -> None:
    rules = Rules()
    call, endless = rules.add(text("\nab")), rules.reserve()
    rules.define(endless, seq(text("x"), endless))
    tags = (("<t>", call), ("<never>", endless))
    again = Matcher(to_ebnf(rules, Dispatch(tags, loop=True, excludes=("bad",))))
    once = Matcher(to_ebnf(rules, Dispatch(tags, loop=False)))
    for matcher in (again, once):
        assert all(matcher.accepts(s) for s in ("", "x", "<t", "x<t>\nab", "<t<t>\nab"))
        assert not any(matcher.accepts(s) for s in ("<t>", "x<t>y", "<never>"))
    assert again.accepts("<t>\nab y <t>\nab") and not again.accepts("a bad")
    assert not once.accepts("<t>\naby")
