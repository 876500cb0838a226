"""A broken library is named before anything is served."""

from __future__ import annotations

import pytest
from guided_engine.grammars import Grammars
from guided_engine.self_test import SelfTestError, Speller, prove
from guided_grammar.compiler import Compiled
from guided_grammar.spec import GrammarSpec, Kind
from guided_grammar.vocabulary import Vocabulary
from guided_testing.byte_tokenizer import byte_vocabulary
from guided_testing.engine_fakes import VOCABULARY, ByteTokenizer, InProcess, byte_grammars


class Broken(InProcess):
    """A compiler that gives these grammars for constraints of these kinds."""

    def __init__(self, texts: dict[Kind, str]) -> None:
        super().__init__()
        self._texts = texts

    def compile(self, spec: GrammarSpec, client: str = "") -> Compiled:
        return Compiled(self._texts[spec.kind]) if spec.kind in self._texts else super().compile(spec)


def test_d192_what_works_is_proven_silently() -> None:
    prove(byte_grammars(), ByteTokenizer())


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({Kind.CHOICE: "root ::= [a-z]*"}, r"^xgrammar \d.* takes 'y' under choice"),
        ({Kind.REGEX: 'root ::= "42"'}, r"^xgrammar \d.* does not take '42-abc' under regex"),
        ({Kind.GBNF: "root ::= missing"}, r"^xgrammar \d.* fails on gbnf: UnsupportedConstraint"),
        ({Kind.JSON_SCHEMA: "root ::= [^z]*"}, r"takes '\{\"name\": \"Belinda\"' under json_schema"),
    ],
)
def test_d192_what_a_mask_engine_gets_wrong_is_named(texts: dict[Kind, str], message: str) -> None:
    with pytest.raises(SelfTestError, match=message):
        prove(Grammars(VOCABULARY, Broken(texts), 1 << 20), ByteTokenizer())


def test_d192_a_tokenizer_that_changes_text_is_named() -> None:
    class Shouting(ByteTokenizer):
        def encode(self, text: str) -> list[int]:
            return super().encode(text.upper())

    with pytest.raises(SelfTestError, match=r"^tokenizers \d.* writes 'hello: .* as b'HELLO: "):
        prove(byte_grammars(), Shouting())


def test_texts_are_spelled_with_the_longest_tokens() -> None:
    assert Speller(byte_vocabulary((b"yes", b"ye"))).ids("yesye!") == [258, 259, ord("!")]
    with pytest.raises(SelfTestError, match="the vocabulary has no token for b'b'"):
        Speller(Vocabulary((b"a", b""), (1,))).ids("ab")
