"""Many distinct schemas: per-token cost of masks under a cache that is far too small, and memory that stays flat."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from guided_engine.weights import resolve
from guided_grammar.compiler import compile_spec
from guided_grammar.limits import DEFAULT_LIMITS
from guided_grammar.session import MaskEngine, Session
from guided_grammar.spec import GrammarSpec, Kind
from guided_grammar.vocabulary import Vocabulary
from tokenizers import Tokenizer

from isolation.family import resident
from isolation.streams import schema

_DEFAULT_BYTES, _SMALL_BYTES = 512 << 20, 1 << 20
_DISTINCT = (64, 256, 2048)
_READS, _WALK, _IN_FLIGHT = 2, 24, 16
_GROWTH, _EVERY = 10_000, 1000


@cache
def vocabulary() -> Vocabulary:
    """Of the embedded model."""
    tokenizer = Tokenizer.from_file(str(Path(resolve("smollm2-135m-instruct")) / "tokenizer.json"))
    stop_id = tokenizer.token_to_id("<|im_end|>")
    return Vocabulary.from_tokenizer(tokenizer, stop_ids=[] if stop_id is None else [stop_id])


def grammar(at: int) -> str:
    """Grammar text of the schema of that number."""
    wanted = schema(random.Random(at), f"key{at}")
    return compile_spec(GrammarSpec(Kind.JSON_SCHEMA, {"schema": wanted})).text


def cardinality() -> Iterator[dict[str, Any]]:
    """Round robin over the schemas, 16 answers at a time; the default again at the end shows that nothing drifted."""
    texts = [grammar(at) for at in range(max(_DISTINCT))]
    for arm, size in (("default", _DEFAULT_BYTES), ("1 MiB", _SMALL_BYTES), ("default again", _DEFAULT_BYTES)):
        for distinct in _DISTINCT:
            yield {"part": "cardinality", "cache": arm, "distinct": distinct, **_read(texts[:distinct], size)}


def _read(texts: list[str], size: int) -> dict[str, Any]:
    engine = MaskEngine(vocabulary(), DEFAULT_LIMITS, size)
    rounds, builds, masks = texts * _READS, list[float](), list[float]()
    for at in range(0, len(rounds), _IN_FLIGHT):
        sessions = []
        for text in rounds[at : at + _IN_FLIGHT]:
            begin = time.perf_counter()
            sessions.append(engine.session(engine.compile(text)))
            builds.append(time.perf_counter() - begin)
        masks += walk(sessions, random.Random(at))
    stats = engine.stats
    return {
        "us_per_token": round(statistics.fmean(masks) * 1e6, 2),
        "us_per_token_p50": round(statistics.median(masks) * 1e6, 2),
        "us_per_token_p99": round(sorted(masks)[int(len(masks) * 0.99)] * 1e6, 1),
        "build_ms_p50": round(statistics.median(builds) * 1e3, 2),
        "hits": stats.hits,
        "misses": stats.misses,
        "evictions": stats.evictions,
        "cache_mib": round(stats.bytes / 2**20, 2),
        "rss_mib": round(resident() / 2**20),
    }


def walk(sessions: list[Session], rng: random.Random) -> list[float]:
    """CPU seconds of mask and accept of each token, the sessions taking turns as the rows of a step do."""
    bits = np.zeros((1, -(-vocabulary().vocab_size // 32)), np.int32)
    spent = []
    for _ in range(_WALK):
        for session in sessions:
            if session.is_terminated:
                continue
            bits.fill(0)
            begin = time.thread_time()
            session.fill(bits, 0)
            filled = time.thread_time() - begin
            token = drawn(bits[0], rng)
            begin = time.thread_time()
            assert session.accept(token)
            spent.append(filled + time.thread_time() - begin)
    return spent


def drawn(words: Any, rng: random.Random) -> int:
    """A random legal token."""
    occupied = np.flatnonzero(words)
    at = int(occupied[rng.randrange(len(occupied))])
    return at * 32 + rng.choice([bit for bit in range(32) if int(words[at]) >> bit & 1])


def growth() -> Iterator[dict[str, Any]]:
    """Resident memory of one process that compiles and starts 10,000 distinct schemas with the default cache."""
    engine, begin = MaskEngine(vocabulary(), DEFAULT_LIMITS, _DEFAULT_BYTES), time.monotonic()
    for at in range(_GROWTH):
        walk([engine.session(engine.compile(grammar(at)))], random.Random(at))
        if (at + 1) % _EVERY == 0:
            sizes = {"rss_mib": round(resident() / 2**20), "cache_mib": round(engine.stats.bytes / 2**20, 1)}
            counts = {"evictions": engine.stats.evictions, "seconds": round(time.monotonic() - begin)}
            yield {"part": "growth", "schemas": at + 1, **sizes, **counts}
