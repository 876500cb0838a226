"""The engine's side of constraints: specs to matchers off the step, matchers to masks inside it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol, cast

import numpy as np
from guided_grammar.batch import StepMasks, fill
from guided_grammar.compiler import Compiled
from guided_grammar.errors import LimitExceeded
from guided_grammar.limits import DEFAULT_LIMITS, Limits
from guided_grammar.losses import Kills
from guided_grammar.pool import PoolStats
from guided_grammar.session import CacheStats, MaskEngine, Session
from guided_grammar.spec import GrammarSpec, Kind
from guided_grammar.vocabulary import Vocabulary
from guided_grammar.worker import lower_priority
from numpy.typing import NDArray

from guided_engine.meter import Meter
from guided_engine.protocol import CONSTRAINT, RequestError
from guided_engine.request import Choice

_BUILDERS = 2


@dataclass(frozen=True)
class GrammarStats:
    """Counters since the start, `num_waiting` and what the cache holds apart.

    text_seconds, proof_seconds: in worker processes. fill_seconds: CPU of `num_masks` masks and what goes with them.
    """

    cache: CacheStats
    kills: Kills = field(default_factory=Kills)
    num_waiting: int = 0
    text_seconds: float = 0.0
    proof_seconds: float = 0.0
    fill_seconds: float = 0.0
    num_masks: int = 0
    num_over_budget: int = 0


class GrammarMatcher:
    """One choice's session, the questions a choice asks of it, and what the answers cost."""

    def __init__(self, session: Session, vocabulary: Vocabulary, meter: Meter | None = None) -> None:
        self.session, self.meter = session, meter or Meter(0)
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

    def allows(self, token_id: int) -> bool:
        """The mask has the token."""
        bits = np.zeros((1, self._words), np.int32)
        return not self.session.fill(bits, 0) or bool(int(bits[0, token_id // 32]) >> (token_id % 32) & 1)

    def accept(self, token_id: int) -> bool:
        """Raises RequestError 400 once the masks of this choice have taken longer than they may."""
        # looked at between a mask and its token only: before the first mask nothing may fail here
        if self.meter.is_over and self.meter.num_masks:
            limit, got = int(self.meter.limit * 1e3), int(self.meter.spent * 1e3)
            error = LimitExceeded("mask milliseconds", limit, got)
            raise RequestError(error.message, 400, CONSTRAINT, error.to_dict())
        with self.meter.running():
            return self.session.accept(token_id)

    def forced_tokens(self) -> list[int]:
        with self.meter.running():
            return self.session.forced_tokens()

    def fill(self, bits: NDArray[np.int32], row: int) -> bool:
        """As `Session.fill`."""
        self.meter.num_masks += 1
        with self.meter.running():
            return self.session.fill(bits, row)


class SpecCompiler(Protocol):
    """Where specs become grammar text: `guided_grammar.pool.CompilePool`."""

    @property
    def stats(self) -> PoolStats: ...

    def compile(self, spec: GrammarSpec, client: str = "") -> Compiled: ...


class Proof(Protocol):
    """Where grammar text is tried before it comes here: `guided_grammar.proof.Prover`."""

    @property
    def stats(self) -> PoolStats: ...

    def prove(self, text: str, markers: frozenset[str], client: str = "") -> None: ...


@dataclass(frozen=True)
class Constrained:
    """A constraint ready to run: one matcher per choice, and the control tokens whose text is part of the answer."""

    matchers: tuple[GrammarMatcher, ...]
    markers: frozenset[str]


class Grammars:
    """Constraints of one vocabulary. `matchers` is thread-safe and blocks; `fill` belongs to the step.

    proof: None tries every grammar in this process, which cannot be interrupted.
    mask_seconds: CPU time that the masks of one choice may take beyond `PER_TOKEN` a token; 0 is no bound.
    num_asked: how often a constraint reached this class; unconstrained requests leave it alone.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        specs: SpecCompiler,
        cache_bytes: int,
        limits: Limits = DEFAULT_LIMITS,
        proof: Proof | None = None,
        mask_seconds: float = 0.0,
    ) -> None:
        self._vocabulary, self._specs, self._proof, self._mask_seconds = vocabulary, specs, proof, mask_seconds
        self._engine = MaskEngine(vocabulary, limits, cache_bytes)
        # apart from the callers' threads: a build takes up to a second, and the step goes first
        self._builders = ThreadPoolExecutor(_BUILDERS, "mask-build", lower_priority)
        self._lock = threading.Lock()
        self._fill_seconds, self._num_masks, self._num_over = 0.0, 0, 0
        self.num_asked = 0

    @property
    def stats(self) -> GrammarStats:
        """A snapshot of the counters."""
        specs, proof = self._specs.stats, self._proof.stats if self._proof else None
        return GrammarStats(
            self._engine.stats,
            specs.kills + proof.kills if proof else specs.kills,
            specs.num_waiting + (proof.num_waiting if proof else 0),
            specs.seconds,
            proof.seconds if proof else 0.0,
            self._fill_seconds,
            self._num_masks,
            self._num_over,
        )

    def matchers(self, constraint: str, count: int, client: str = "") -> Constrained | None:
        """Fresh matchers for `count` choices; None when the constraint constrains nothing. Raises GrammarError,
        and what `specs.compile` raises when it cannot take the work.

        client: where constraints wait for a worker, clients take turns.
        """
        spec = GrammarSpec.from_json(constraint)
        if spec.kind is Kind.FREE:
            return None
        with self._lock:
            self.num_asked += 1
        compiled = self._specs.compile(spec, client)
        if self._proof is not None:
            self._proof.prove(compiled.text, compiled.markers, client)
        sessions = self._builders.submit(self._sessions, compiled, count).result()
        meters = (Meter(self._mask_seconds) for _ in sessions)
        matchers = (GrammarMatcher(s, self._vocabulary, m) for s, m in zip(sessions, meters, strict=True))
        return Constrained(tuple(matchers), compiled.markers)

    def fill(self, choices: Sequence[Choice]) -> StepMasks | None:
        """Masks for the next token of each choice; None when none of them is constrained."""
        if all(c.matcher is None for c in choices):
            return None
        matchers = [cast("GrammarMatcher | None", c.matcher) for c in choices]
        meters = [m.meter for m in matchers if m is not None]
        before = sum(m.spent for m in meters)
        masks = fill(matchers, self._vocabulary.vocab_size)
        self._fill_seconds += sum(m.spent for m in meters) - before
        self._num_masks += len(meters)
        self._num_over += sum(m.is_over for m in meters)
        return masks

    def close(self) -> None:
        """End the builders; what they work on is finished."""
        self._builders.shutdown(wait=True, cancel_futures=True)

    def _sessions(self, compiled: Compiled, count: int) -> list[Session]:
        mask = self._engine.compile(compiled.text, compiled.markers, proven=self._proof is not None)
        return [self._engine.session(mask) for _ in range(count)]
