"""The engine's side of constraints: specs to matchers off the step, matchers to masks inside it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np
from guided_grammar.batch import StepMasks, fill
from guided_grammar.compiler import Compiled
from guided_grammar.limits import DEFAULT_LIMITS, Limits
from guided_grammar.session import CacheStats, MaskEngine, Session
from guided_grammar.spec import GrammarSpec, Kind
from guided_grammar.vocabulary import Vocabulary

from guided_engine.request import Choice


class GrammarMatcher:
    """One choice's session, and the questions a choice asks of it."""

    def __init__(self, session: Session, vocabulary: Vocabulary) -> None:
        self.session = session
        self._stops, self._words = set(vocabulary.stop_ids), -(-vocabulary.vocab_size // 32)

    @property
    def is_complete(self) -> bool:
        return self.session.is_complete

    @property
    def is_terminated(self) -> bool:
        return self.session.is_terminated

    @property
    def is_closed(self) -> bool:
        """Nothing but a stop is legal."""
        bits = np.zeros((1, self._words), np.int32)
        if not self.session.fill(bits, 0):
            return False
        legal = sum(int(word).bit_count() for word in bits[0][bits[0] != 0].view(np.uint32))
        return legal <= sum(int(bits[0, i // 32]) >> (i % 32) & 1 for i in self._stops)

    def accept(self, token_id: int) -> bool:
        return self.session.accept(token_id)

    def forced_tokens(self) -> list[int]:
        return self.session.forced_tokens()


class SpecCompiler(Protocol):
    """Where specs become grammar text: `guided_grammar.pool.CompilePool`."""

    def compile(self, spec: GrammarSpec) -> Compiled: ...


class Proof(Protocol):
    """Where grammar text is tried before it comes here: `guided_grammar.proof.Prover`."""

    def lazy(self, text: str, markers: frozenset[str]) -> bool: ...


@dataclass(frozen=True)
class Constrained:
    """A constraint ready to run: one matcher per choice, and the control tokens whose text is part of the answer."""

    matchers: tuple[GrammarMatcher, ...]
    markers: frozenset[str]


class Grammars:
    """Constraints of one vocabulary. `matchers` is thread-safe and blocks; `fill` belongs to the step.

    proof: None tries every grammar in this process, which cannot be interrupted.
    num_asked: how often a constraint reached this class; unconstrained requests leave it alone.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        specs: SpecCompiler,
        cache_bytes: int,
        limits: Limits = DEFAULT_LIMITS,
        proof: Proof | None = None,
    ) -> None:
        self._vocabulary, self._specs, self._proof = vocabulary, specs, proof
        self._engine = MaskEngine(vocabulary, limits, cache_bytes)
        self._lock = threading.Lock()
        self.num_asked = 0

    @property
    def stats(self) -> CacheStats:
        return self._engine.stats

    def matchers(self, constraint: str, count: int) -> Constrained | None:
        """Fresh matchers for `count` choices; None when the constraint constrains nothing. Raises GrammarError,
        and what `specs.compile` raises when it cannot take the work."""
        spec = GrammarSpec.from_json(constraint)
        if spec.kind is Kind.FREE:
            return None
        with self._lock:
            self.num_asked += 1
        compiled = self._specs.compile(spec)
        lazy = None if self._proof is None else self._proof.lazy(compiled.text, compiled.markers)
        mask = self._engine.compile(compiled.text, compiled.markers, lazy=lazy)
        sessions = (self._engine.session(mask) for _ in range(count))
        return Constrained(tuple(GrammarMatcher(s, self._vocabulary) for s in sessions), compiled.markers)

    def fill(self, choices: Sequence[Choice]) -> StepMasks | None:
        """Masks for the next token of each choice; None when none of them is constrained."""
        if all(c.matcher is None for c in choices):
            return None
        matchers = [cast("GrammarMatcher | None", c.matcher) for c in choices]
        return fill([None if m is None else m.session for m in matchers], self._vocabulary.vocab_size)
