"""Bytes of tokens, read from tokenizers of each kind."""

from __future__ import annotations

import pytest
from guided_grammar.vocabulary import Vocabulary
from guided_testing.byte_tokenizer import byte_vocabulary
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers


def byte_level() -> Tokenizer:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {c: i for i, c in enumerate(alphabet)} | {"Ġa": 256, "âĤ": 257}
    tokenizer = Tokenizer(models.BPE(vocab, [("Ġ", "a"), ("â", "Ĥ")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|end|>"])
    tokenizer.add_tokens(["<tool_call>", "naïve"])
    return tokenizer


def sentencepiece() -> Tokenizer:
    vocab = {"<unk>": 0, "▁": 1, "a": 2, "▁a": 3} | {f"<0x{b:02X}>": 4 + b for b in range(256)}
    tokenizer = Tokenizer(models.BPE(vocab, [("▁", "a")], unk_token="<unk>", byte_fallback=True))
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_special_tokens([AddedToken("</s>", special=True)])
    return tokenizer


def test_byte_level_tokens_are_read_as_raw_bytes() -> None:
    tokenizer = byte_level()
    vocabulary = Vocabulary.from_tokenizer(tokenizer, stop_ids=[258])
    assert vocabulary.tokens[256:258] == (b" a", b"\xe2\x82")
    assert sorted(vocabulary.tokens[:256]) == [bytes([b]) for b in range(256)]
    for text in ("héllo \t\r\n", '{"a": "\U00020bb7"}', "👩‍👩‍👧"):
        assert b"".join(vocabulary.tokens[i] for i in tokenizer.encode(text).ids) == text.encode()


def test_byte_fallback_tokens_are_read_as_bytes_and_the_metaspace_as_a_space() -> None:
    vocabulary = Vocabulary.from_tokenizer(sentencepiece(), stop_ids=[260])
    assert vocabulary.tokens[1:4] == (b" ", b"a", b" a")
    assert vocabulary.tokens[4:260] == tuple(bytes([b]) for b in range(256))


def test_special_tokens_markup_stops_unknown_and_padding_write_nothing() -> None:
    vocabulary = Vocabulary.from_tokenizer(byte_level(), vocab_size=300, stop_ids=[258, 5])
    assert vocabulary.vocab_size == 300
    assert [vocabulary.tokens[i] for i in (258, 259, 5, 299)] == [b""] * 4
    assert vocabulary.tokens[260] == "naïve".encode(), "an added word is text"
    assert Vocabulary.from_tokenizer(sentencepiece(), stop_ids=[260]).tokens[0] == b""


def test_markers_of_a_grammar_become_readable_and_stops_never_do() -> None:
    vocabulary = Vocabulary.from_tokenizer(byte_level(), stop_ids=[258])
    tokens = vocabulary.with_markers(["<tool_call>", "<|end|>", "no token"])
    assert tokens[259] == b"<tool_call>"
    assert tokens[258] == b""


def test_a_tokenizer_whose_bytes_cannot_be_told_is_refused() -> None:
    tokenizer = Tokenizer(models.WordPiece({"[UNK]": 0, "a": 1}, unk_token="[UNK]"))
    with pytest.raises(ValueError, match="WordPiece"):
        Vocabulary.from_tokenizer(tokenizer, stop_ids=[0])


@pytest.mark.parametrize("stops", [(), (-1,), (999,)])
def test_a_vocabulary_without_a_stop_inside_it_is_refused(stops: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="stop id"):
        Vocabulary(byte_vocabulary().tokens, stops)
