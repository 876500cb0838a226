"""A step's masks in their cheapest form."""

from __future__ import annotations

import numpy as np
import pytest
from guided_grammar.batch import MAX_IDS, RowKind, fill, legal_ids
from guided_grammar.session import MaskEngine, Session
from guided_grammar.vocabulary import Vocabulary
from guided_testing.byte_tokenizer import EOS, byte_engine, byte_vocabulary, compile_bytes

WIDE = Vocabulary((*byte_vocabulary().tokens, *(b"x" * n for n in range(2, 2000))), (EOS,))


def session(grammar: str) -> Session:
    return byte_engine().session(compile_bytes(grammar))


def test_each_row_is_given_in_its_own_form() -> None:
    forced, few, ended = session('root ::= "ab"'), session("root ::= [a-c]*"), session('root ::= "a"')
    for token_id in (0x61, EOS):
        ended.accept(token_id)
    masks = fill([None, forced, few, ended], 258)
    assert masks.kind.tolist() == [RowKind.UNCONSTRAINED, RowKind.FORCED, RowKind.IDS, RowKind.UNCONSTRAINED]
    assert masks.index.tolist() == [0, 0x61, 0, 0]
    assert masks.ids[0, : masks.num_ids[0]].tolist() == [0x61, 0x62, 0x63, EOS]
    assert masks.failed == (3,)
    assert masks.bits.shape == (0, 9)


def test_a_dense_row_is_bits_over_the_models_width() -> None:
    engine = MaskEngine(WIDE)
    masks = fill([engine.session(engine.compile('root ::= "x"*'))], WIDE.vocab_size)
    legal = np.flatnonzero(np.unpackbits(masks.bits[0].view(np.uint8), bitorder="little"))
    assert masks.kind.tolist() == [RowKind.BITS]
    assert legal.tolist() == sorted([ord("x"), EOS, *range(258, WIDE.vocab_size)])


def test_a_position_from_which_no_token_leads_on_fails_its_row_only() -> None:
    stuck = session('root ::= "a" r\nr ::= r "a"')
    assert stuck.accept(0x61)
    masks = fill([stuck, session('root ::= "b"')], 258)
    assert masks.failed == (0,)
    assert masks.index.tolist() == [0, 0x62]


def test_no_rows_give_empty_arrays() -> None:
    masks = fill([], 258)
    assert masks.kind.shape == masks.index.shape == masks.num_ids.shape == (0,)
    assert masks.ids.shape == (0, MAX_IDS)


@pytest.mark.parametrize("ids", [[], [0], [31], [32], [0, 31, 32, 2015], list(range(1024)), list(range(0, 4096, 4))])
def test_set_bits_are_read_back_as_ascending_ids(ids: list[int]) -> None:
    found = legal_ids(_words(ids))
    assert found is not None
    assert found.tolist() == ids


@pytest.mark.parametrize("ids", [list(range(1025)), list(range(0, 2050 * 32, 32))])
def test_more_than_1024_bits_are_no_ids(ids: list[int]) -> None:
    assert legal_ids(_words(ids)) is None


def _words(ids: list[int]) -> np.ndarray:
    bits = np.zeros(2051 * 32, np.uint8)
    bits[ids] = 1
    return np.packbits(bits, bitorder="little").view(np.int32)
