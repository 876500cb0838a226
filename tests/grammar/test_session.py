"""One answer's position in its grammar, and the cache of compiled grammars."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from guided_grammar.errors import LimitExceeded, UnsatisfiableConstraint, UnsupportedConstraint
from guided_grammar.limits import Limits
from guided_grammar.session import MaskEngine, Session
from guided_grammar.vocabulary import Vocabulary
from guided_testing.byte_tokenizer import CONTROL, EOS, accepts, byte_engine, byte_vocabulary, compile_bytes

WORDS = 'root ::= "a" [b-d]* "é"?'


def session(grammar: str) -> Session:
    return byte_engine().session(compile_bytes(grammar))


@pytest.mark.parametrize("text", ["a", "abc", "aé"])
def test_a_sentence_is_accepted(text: str) -> None:
    assert accepts(WORDS, text)


@pytest.mark.parametrize("text", ["", "ae", b"a\xc3", "abéx"])
def test_another_text_is_not(text: str | bytes) -> None:
    assert not accepts(WORDS, text)


@pytest.mark.parametrize("token_id", [0x78, CONTROL, EOS, -1, 258, 2**32 + 0x61])
def test_an_illegal_token_is_refused_and_leaves_the_position(token_id: int) -> None:
    position = session(WORDS)
    assert not position.accept(token_id)
    assert position.accept(0x61)


def test_complete_means_that_a_stop_is_legal_and_terminated_that_one_was_taken() -> None:
    position = session(WORDS)
    seen = [position.is_complete]
    for token_id in (0x61, 0xC3, 0xA9):
        assert position.accept(token_id)
        seen.append(position.is_complete)
    assert seen == [False, True, False, True]
    assert position.accept(EOS)
    assert position.is_terminated
    assert not position.is_complete
    assert not position.accept(0x61)


def test_rollback_takes_back_tokens_and_a_stop() -> None:
    position = session(WORDS)
    for token_id in (0x61, 0x62, EOS):
        position.accept(token_id)
    position.rollback(2)
    assert not position.is_terminated
    assert position.accept(0xC3)
    for num_tokens in (9, -1):
        with pytest.raises(ValueError, match=f"cannot roll back {num_tokens}"):
            position.rollback(num_tokens)


def test_a_fork_moves_alone() -> None:
    position = session(WORDS)
    position.accept(0x61)
    branch = position.fork()
    assert branch.accept(0xC3)
    assert branch.forced_tokens() == [0xA9]
    assert position.forced_tokens() == []
    assert position.accept(0x62)


def test_a_grammar_in_which_no_token_can_begin_is_unsatisfiable() -> None:
    with pytest.raises(UnsatisfiableConstraint):
        session('root ::= r\nr ::= r "a"')


def test_text_that_the_mask_engine_refuses_is_unsupported_without_a_source_line() -> None:
    with pytest.raises(UnsupportedConstraint, match='Rule "foo" is not defined') as caught:
        compile_bytes("root ::= foo")
    assert "cpp" not in str(caught.value)


def test_text_over_the_limit_is_refused_before_compiling() -> None:
    engine = MaskEngine(byte_vocabulary(), Limits(emitted_bytes=20))
    with pytest.raises(LimitExceeded, match="limit is 20, got 21"):
        engine.compile('root ::= "aaaaaaaaaa"')


def test_every_declared_stop_is_legal_at_the_end_and_nowhere_else() -> None:
    engine = MaskEngine(Vocabulary(byte_vocabulary().tokens, (EOS, CONTROL)))
    for stop in (EOS, CONTROL):
        position = engine.session(engine.compile('root ::= "ab"'))
        assert not position.accept(stop)
        assert all(map(position.accept, (0x61, 0x62, stop)))


def test_a_marker_is_readable_only_in_the_grammar_that_names_it() -> None:
    engine = MaskEngine(byte_vocabulary())
    text = 'root ::= "<|control|>"'
    assert engine.session(engine.compile(text, frozenset({"<|control|>", "absent"}))).accept(CONTROL)
    assert not engine.session(engine.compile(text)).accept(CONTROL)


def test_bits_past_the_vocabulary_are_clear() -> None:
    bits = np.zeros((1, 9), np.int32)
    assert session('root ::= TagDispatch(("<t>", r))\nr ::= "x"').fill(bits, 0)
    assert np.unpackbits(bits.view(np.uint8), bitorder="little")[258:].sum() == 0


def test_the_cache_counts_hits_and_misses_and_stays_within_its_bytes() -> None:
    engine = MaskEngine(byte_vocabulary(), cache_bytes=50_000)
    texts = [f'root ::= "{"x" * n}"' for n in range(1, 40)]
    for text in texts:
        engine.compile(text)
    engine.compile(texts[-1])
    stats = engine.stats
    assert (stats.hits, stats.misses) == (1, len(texts))
    assert stats.evictions == len(texts) - stats.entries > 0
    assert 0 < stats.bytes <= 25_000
    assert stats.compile_seconds > 0


def test_a_grammar_larger_than_the_cache_still_compiles() -> None:
    engine = MaskEngine(byte_vocabulary(), cache_bytes=10)
    assert engine.session(engine.compile(WORDS)).accept(0x61)
    assert engine.stats.entries == 0


def test_threads_that_ask_for_one_grammar_share_one_compile() -> None:
    engine = MaskEngine(byte_vocabulary())
    barrier, got = threading.Barrier(8), []

    def ask() -> None:
        barrier.wait()
        got.append(engine.compile(WORDS))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(compiled.handle) for compiled in got}) == 1
    assert (engine.stats.misses, engine.stats.hits) == (1, 7)


def test_a_refusal_reaches_every_waiting_thread_and_is_not_kept() -> None:
    engine = MaskEngine(byte_vocabulary())
    for _ in range(2):
        with pytest.raises(UnsupportedConstraint):
            engine.compile("root ::= foo")
    assert engine.stats.misses == 2
