"""Masks of a whole grammar, and refusing grammars whose masks are slow."""

from __future__ import annotations

import pytest
import xgrammar
from guided_grammar import probe
from guided_grammar.common_rules import common_rules
from guided_grammar.errors import LimitExceeded
from guided_grammar.probe import MaskCompiler
from guided_grammar.vocabulary import Vocabulary
from guided_testing.byte_tokenizer import byte_vocabulary

WORDS = tuple(a + b for a in (bytes([x]) for x in range(97, 123)) for b in (bytes([y]) for y in range(97, 123)))
VOCABULARY = Vocabulary((*byte_vocabulary().tokens, *WORDS), (256,))


def compiler() -> MaskCompiler:
    return MaskCompiler(VOCABULARY.tokens, VOCABULARY.stop_ids, 1 << 20)


def test_a_grammar_that_is_judged_is_compiled() -> None:
    handle = compiler().judge('root ::= "ab" [c-e]*')
    assert xgrammar.GrammarMatcher(handle).accept_string("abc")


@pytest.mark.parametrize("grammar", ["root ::= foo", "root"])
def test_what_xgrammar_refuses_raises(grammar: str) -> None:
    with pytest.raises(RuntimeError):
        compiler().judge(grammar)


def test_a_grammar_whose_masks_are_slow_is_refused() -> None:
    letters = [bytes([code]) for code in range(97, 123)]
    tokens = [*VOCABULARY.tokens, *(a + b + c for a in letters for b in letters for c in letters)]
    slow = "root ::= " + " ".join(["r?"] * 60) + "\nr ::= [a-z] [a-z]?"
    with pytest.raises(LimitExceeded, match="mask milliseconds limit is 100"):
        MaskCompiler(tokens, VOCABULARY.stop_ids, 1 << 20).judge(slow)


def test_a_grammar_without_a_first_token_is_left_to_the_session() -> None:
    assert compiler().judge('root ::= r\nr ::= r "a"') is not None


def test_no_mask_is_left_to_be_made_in_the_middle_of_an_answer() -> None:
    handle = compiler().build('root ::= [^x]{3,900} r\nr ::= [a-z]* "x"')
    size = handle.memory_size_bytes
    matcher, bits = xgrammar.GrammarMatcher(handle), xgrammar.allocate_token_bitmask(1, len(VOCABULARY.tokens))
    for token_id in b"abcdefx":
        matcher.fill_next_token_bitmask(bits)
        assert matcher.accept_token(token_id)
    assert handle.memory_size_bytes == size


def test_the_common_rules_are_made_before_the_first_grammar(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(xgrammar.GrammarCompiler, "compile_grammar", lambda self, text: asked.append(text))
    monkeypatch.setattr(probe, "common_rules", lambda: ("root ::= [a]", "root ::= [b]"))
    compiler()
    assert asked == ["root ::= [a]", "root ::= [b]"]
    assert all(text.startswith("root ::= ") for text in common_rules())
