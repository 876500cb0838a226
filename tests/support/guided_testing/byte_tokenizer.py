"""A vocabulary of single bytes, and whether a grammar's masks let a text through, byte by byte."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from guided_grammar.session import CompiledMask, MaskEngine, Session
from guided_grammar.vocabulary import Vocabulary

EOS = 256
CONTROL = 257
"""A special token whose text is `<|control|>`: never legal in constrained text."""


def byte_vocabulary(words: tuple[bytes, ...] = ()) -> Vocabulary:
    """ids 0-255 are the bytes, 256 the stop, 257 a control token, then `words` as tokens of several bytes."""
    tokens = [bytes([b]) for b in range(256)] + [b"", b"", *words]
    return Vocabulary(tuple(tokens), (EOS,), {"<|control|>": CONTROL})


@lru_cache(maxsize=1)
def byte_engine() -> MaskEngine:
    return MaskEngine(byte_vocabulary())


def compile_bytes(ebnf: str) -> CompiledMask:
    """Compile grammar text for the byte vocabulary."""
    return byte_engine().compile(ebnf)


def accepts(grammar: str | CompiledMask, text: str | bytes) -> bool:
    """Whether masks of `grammar` let every byte of `text` through and then the stop token."""
    compiled = compile_bytes(grammar) if isinstance(grammar, str) else grammar
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    session = byte_engine().session(compiled)
    return all(_legal(session, b) and session.accept(b) for b in data) and _legal(session, EOS)


def _legal(session: Session, token_id: int) -> bool:
    bits = np.zeros((1, -(-byte_engine().vocabulary.vocab_size // 32)), np.int32)
    return not session.fill(bits, 0) or bool(bits[0, token_id // 32] >> (token_id % 32) & 1)
