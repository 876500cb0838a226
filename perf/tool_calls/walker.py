"""A model of random logits under a grammar: what it writes, token by token, as the engine would show it."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
from guided_engine.detokenize import Detokenizer
from guided_engine.tokenizer import Tokenizer
from guided_grammar.session import Session
from numpy.typing import NDArray

_ENDS = frozenset(b"\"'<>}])|,=\n")
_STOPS_AT = 0.4
_CLOSES_AT = 0.15


@dataclass(frozen=True)
class Walk:
    """pieces: the text of each token. is_whole: it ended by itself, not at the bound."""

    pieces: tuple[str, ...]
    is_whole: bool

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class Walker:
    """tokenizer: whose tokens are drawn. max_tokens: a walk's bound. closer: what ends a text of no other bound; it is
    written now and then where it is legal, as chance would hardly spell it. Tokens that may end things are preferred,
    the more the longer a walk is, so that endless strings and lists end."""

    def __init__(self, tokenizer: Tokenizer, max_tokens: int = 1500, closer: str = "") -> None:
        self._tokenizer, self._max_tokens = tokenizer, max_tokens
        vocabulary = tokenizer.vocabulary
        self._size, self._stops = vocabulary.vocab_size, np.array(vocabulary.stop_ids)
        shown = vocabulary.with_markers(vocabulary.markup)
        self._ends: NDArray[np.bool_] = np.array([not _ENDS.isdisjoint(piece) for piece in shown])
        self._closer = tokenizer.encode(closer) if closer else []
        self._bits = np.zeros((1, -(-self._size // 32)), np.int32)

    def walk(self, session: Session, markers: frozenset[str], seed: str, begin: str, jumps: bool) -> Walk:
        """begin: text that is written first, markup as its tokens; it must be legal. jumps: text that the grammar
        forces is written without a draw, as the engine does."""
        rng = random.Random(seed)
        detokenizer = Detokenizer(self._tokenizer.pieces(markers))
        written: list[str] = []

        def take(token: int) -> None:
            if not session.accept(token):
                raise AssertionError(f"token {token} was drawn against the grammar after {''.join(written)!r}")
            written.append(detokenizer.push(token))

        for token in self._tokenizer.encode(begin) if begin else ():
            take(token)
        while len(written) < self._max_tokens:
            if rng.random() < _CLOSES_AT and self._can_close(session):
                for token in self._closer:
                    take(token)
                continue
            drawn = self._draw(session, rng, len(written))
            if drawn is None:
                return Walk(tuple(written), True)
            take(drawn)
            for forced in session.forced_tokens() if jumps else ():
                take(forced)
        return Walk(tuple(written), False)

    def _can_close(self, session: Session) -> bool:
        """Whether the closer is legal here; there is one."""
        trial = session.fork()
        return bool(self._closer) and all(trial.accept(token) for token in self._closer)

    def _draw(self, session: Session, rng: random.Random, length: int) -> int | None:
        """The next token, None for a stop."""
        self._bits[:] = -1
        session.fill(self._bits, 0)
        legal = np.unpackbits(self._bits.view(np.uint8), bitorder="little")[: self._size].astype(bool)
        can_stop = bool(legal[self._stops].any())
        legal[self._stops] = False
        if can_stop and (rng.random() < _STOPS_AT or not legal.any()):
            return None
        ends = legal & self._ends
        eager = min(0.95, 0.5 + length / 200)
        drawn = ends if ends.any() and rng.random() < eager else legal
        return int(rng.choice(np.flatnonzero(drawn)))

    def noise(self, rng: random.Random, most: int) -> str:
        """Text of random tokens, as a model that reasons might write."""
        pieces = self._tokenizer.pieces()
        return b"".join(pieces[rng.randrange(self._size)] for _ in range(rng.randrange(1, most))).decode(
            errors="ignore"
        )
