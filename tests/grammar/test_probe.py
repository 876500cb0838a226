"""Compiling masks in bounded time, and refusing grammars whose masks are slow."""

from __future__ import annotations

import threading

import pytest
import xgrammar
from guided_grammar import probe
from guided_grammar.errors import LimitExceeded
from guided_grammar.probe import MaskCompiler
from guided_grammar.session import MaskEngine
from guided_grammar.vocabulary import Vocabulary
from guided_testing.byte_tokenizer import byte_vocabulary

WORDS = tuple(a + b for a in (bytes([x]) for x in range(97, 123)) for b in (bytes([y]) for y in range(97, 123)))
VOCABULARY = Vocabulary((*byte_vocabulary().tokens, *WORDS), (256,))


def compiler(seconds: float = 30.0) -> MaskCompiler:
    return MaskCompiler(VOCABULARY.tokens, VOCABULARY.stop_ids, 1 << 20, seconds)


def never(_: xgrammar.CompiledGrammar) -> None:
    raise AssertionError("nothing better can come")


def test_a_quick_compile_is_whole_at_once() -> None:
    handle = compiler().judge('root ::= "ab" [c-e]*', never).handle
    assert xgrammar.GrammarMatcher(handle).accept_string("abc")


def test_a_slow_compile_answers_first_and_becomes_better_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "PATIENCE", 0.0)
    came, done = [], threading.Event()
    chain = "".join(f"r{i} ::= [^x] r{i + 1} | [a-c] r{i + 1}\n" for i in range(300)) + 'r300 ::= "x"\n'
    judged = compiler().judge("root ::= r0\n" + chain, lambda better: (came.append(better), done.set()))  # type: ignore[func-returns-value]
    assert done.wait(60)
    assert judged.lazy
    for grammar in (judged.handle, came[0]):
        assert xgrammar.GrammarMatcher(grammar).accept_string("ab" * 150 + "x")


def test_the_engine_gives_later_sessions_the_better_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "PATIENCE", 0.0)
    engine = MaskEngine(VOCABULARY)
    chain = "".join(f"r{i} ::= [^x] r{i + 1} | [a-c] r{i + 1}\n" for i in range(300)) + 'r300 ::= "x"\n'
    first = engine.compile("root ::= r0\n" + chain)
    for _ in range(600):
        if engine.compile("root ::= r0\n" + chain).handle is not first.handle:
            break
        threading.Event().wait(0.1)
    later = engine.compile("root ::= r0\n" + chain)
    assert later.handle is not first.handle
    assert engine.stats.entries == 1
    assert engine.session(later).accept(97) and engine.session(first).accept(97)


@pytest.mark.parametrize("grammar", ["root ::= foo", "root"])
def test_what_xgrammar_refuses_raises(grammar: str) -> None:
    with pytest.raises(RuntimeError):
        compiler().judge(grammar, never)


def test_a_compile_over_its_time_is_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "PATIENCE", 0.0)
    slow = "root ::= " + " ".join(['"a"?'] * 700)
    with pytest.raises(LimitExceeded, match="mask compile milliseconds limit is 1"):
        compiler(0.001).judge(slow, lambda better: None)


def test_a_grammar_whose_masks_are_slow_is_refused() -> None:
    letters = [bytes([code]) for code in range(97, 123)]
    tokens = [*VOCABULARY.tokens, *(a + b + c for a in letters for b in letters for c in letters)]
    slow = "root ::= " + " ".join(["r?"] * 60) + "\nr ::= [a-z] [a-z]?"
    with pytest.raises(LimitExceeded, match="mask milliseconds limit is 100"):
        MaskCompiler(tokens, VOCABULARY.stop_ids, 1 << 20, 30.0).judge(slow, lambda better: None)


def test_a_grammar_without_a_first_token_is_left_to_the_session() -> None:
    assert compiler().judge('root ::= r\nr ::= r "a"', never) is not None


def test_a_shape_whose_new_masks_are_slow_waits_for_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "PATIENCE", 0.0)
    monkeypatch.setattr(probe, "_NEW_MASK_MS", -1.0)
    handle = compiler().judge("root ::= [a-c] " + " ".join(['"ab"'] * 500), never).handle
    assert xgrammar.GrammarMatcher(handle).accept_string("aabab")
