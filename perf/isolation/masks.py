"""Masks in the engine's process: how slow, large and deadly a proven grammar can be; and what moving them costs."""

from __future__ import annotations

import contextlib
import random
import statistics
import sys
import time
from collections.abc import Iterator
from functools import cache
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from typing import Any

import numpy as np
from guided_grammar.batch import StepMasks, fill
from guided_grammar.compiler import Compiled
from guided_grammar.errors import GrammarError
from guided_grammar.limits import DEFAULT_LIMITS
from guided_grammar.pool import CompilePool, PoolBusy
from guided_grammar.proof import Prover
from guided_grammar.session import MaskEngine, Session
from guided_grammar.spec import GrammarSpec, Kind
from guided_grammar.worker import Worker, WorkerDied, WorkerTimeout
from numpy.typing import NDArray

from isolation.family import resident
from isolation.schemas import drawn, grammar, vocabulary

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))

from guided_testing.hostile import hostile_fields

_TOKENS, _SEEDS = 600, 2
_ROWS, _STEPS = (1, 8, 32), 150
_KINDS = {
    "guided_regex": Kind.REGEX,
    "guided_grammar": Kind.GBNF,
    "guided_choice": Kind.CHOICE,
    "guided_json": Kind.JSON_SCHEMA,
}


def specs() -> dict[str, GrammarSpec]:
    """The hostile constraints, tools apart."""
    found = {}
    for name, fields in hostile_fields().items():
        (field, value), *more = fields.items()
        if not more:
            kind = _KINDS[field]
            found[name] = GrammarSpec(kind, {"schema": value} if kind is Kind.JSON_SCHEMA else value)
    return found


def walks() -> Iterator[dict[str, Any]]:
    """Long random answers under every hostile grammar that is proven: one row of all, then the slowest and largest."""
    pool, prover = CompilePool(DEFAULT_LIMITS), Prover(vocabulary(), DEFAULT_LIMITS)
    worker = Worker(8 << 30, [str(Path(__file__).parents[1])])
    rows = []
    try:
        for name, spec in specs().items():
            try:
                compiled = pool.compile(spec)
                prover.prove(compiled.text, compiled.markers)
            except (GrammarError, PoolBusy):
                continue
            rows.append({"name": name, **_walked(worker, compiled)})
    finally:
        for process in (pool, prover, worker):
            process.close()
    ends = [row["end"] for row in rows]
    yield {
        "part": "walks",
        "constraints": len(specs()),
        "proven": len(rows),
        "tokens": sum(row.get("tokens", 0) for row in rows),
        "crashed": ends.count("crashed"),
        "over_the_clock": ends.count("over the clock"),
    }
    for row in sorted(rows, key=lambda row: -row.get("total_ms", 1e9))[:6]:
        yield {"part": "walk", **row}


def _walked(worker: Worker, compiled: Compiled) -> dict[str, Any]:
    try:
        found: dict[str, Any] = worker.call("isolation.masks:walked", compiled, seconds=60.0)
    except WorkerTimeout:
        return {"end": "over the clock"}
    except WorkerDied:
        return {"end": "crashed"}
    return {"end": "done", **found}


@cache
def _engine() -> MaskEngine:
    return MaskEngine(vocabulary(), DEFAULT_LIMITS)


def walked(compiled: Compiled) -> dict[str, Any]:
    """In the worker: what answers of `_TOKENS` tokens cost, all that the step does with a grammar included."""
    mask = _engine().compile(compiled.text, compiled.markers)
    before, slowest, total, tokens = resident(), 0.0, 0.0, 0
    for seed in range(_SEEDS):
        session, rng = _engine().session(mask), random.Random(seed)
        for _ in range(_TOKENS):
            begin = time.thread_time()
            token = _next(session, rng)
            if token is not None:
                session.accept(token)
                session.forced_tokens()
            spent = time.thread_time() - begin
            slowest, total, tokens = max(slowest, spent), total + spent, tokens + 1
            if token is None or session.is_terminated:
                break
    grown = (resident() - before) / 2**20
    return {
        "tokens": tokens,
        "slowest_ms": round(slowest * 1e3, 1),
        "mean_ms": round(total / tokens * 1e3, 3),
        "total_ms": round(total * 1e3),
        "grown_mib": round(grown, 1),
    }


def _next(session: Session, rng: random.Random) -> int | None:
    """A random legal token, no stop as long as there is another."""
    bits = np.full((1, -(-vocabulary().vocab_size // 32)), -1, np.int32)
    session.fill(bits, 0)
    for stop in vocabulary().stop_ids:
        bits[0, stop // 32] &= ~np.int32(np.uint32(1 << stop % 32).astype(np.int32))
    return drawn(bits[0], rng) if bits.any() else None


def placement() -> Iterator[dict[str, Any]]:
    """One step's masks and accepts, made here and made in a process of their own that shares memory with this one."""
    for rows in _ROWS:
        here, there = _here(rows), _there(rows)
        yield {
            "part": "placement",
            "rows": rows,
            "here_us_p50": round(statistics.median(here) * 1e6),
            "process_us_p50": round(statistics.median(there) * 1e6),
            "here_us_p99": round(sorted(here)[int(len(here) * 0.99)] * 1e6),
            "process_us_p99": round(sorted(there)[int(len(there) * 0.99)] * 1e6),
        }


def _sessions(rows: int) -> list[Session]:
    return [_engine().session(_engine().compile(grammar(at))) for at in range(rows)]


def _here(rows: int) -> list[float]:
    sessions, rng, spent = _sessions(rows), random.Random(0), list[float]()
    for _ in range(_STEPS):
        begin = time.perf_counter()
        masks = fill(sessions, vocabulary().vocab_size)
        middle = time.perf_counter()
        tokens = _tokens(masks, rng)
        after = time.perf_counter()
        sessions = _accepted(sessions, tokens)
        spent.append(middle - begin + time.perf_counter() - after)
    return spent


def _there(rows: int) -> list[float]:
    """Wall clock from sending the tokens of a step to having the masks of the next one."""
    context, rng, spent = get_context("spawn"), random.Random(0), list[float]()
    words = -(-vocabulary().vocab_size // 32)
    shared = SharedMemory(create=True, size=rows * words * 4)
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(rows, shared.name, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        masks = ours.recv()
        for _ in range(_STEPS):
            tokens = _tokens(_with_bits(masks, shared, words), rng)
            begin = time.perf_counter()
            ours.send(tokens)
            masks = ours.recv()
            spent.append(time.perf_counter() - begin)
    finally:
        ours.close()
        process.join(10)
        shared.close()
        shared.unlink()
    return spent


def _serve(rows: int, name: str, pipe: Connection) -> None:
    shared, sessions = SharedMemory(name), _sessions(rows)
    with contextlib.suppress(EOFError):
        while True:
            masks = fill(sessions, vocabulary().vocab_size)
            np.ndarray(masks.bits.shape, np.int32, shared.buf)[:] = masks.bits
            pipe.send((masks.kind, masks.index, len(masks.bits), masks.ids, masks.num_ids))
            sessions = _accepted(sessions, pipe.recv())
    shared.close()


def _with_bits(sent: Any, shared: SharedMemory, words: int) -> StepMasks:
    kind, index, dense, ids, num_ids = sent
    bits: NDArray[np.int32] = np.ndarray((dense, words), np.int32, shared.buf).copy()
    return StepMasks(kind, index, bits, ids, num_ids)


def _tokens(masks: StepMasks, rng: random.Random) -> list[int]:
    """A random legal token of each row."""
    chosen = []
    for kind, index in zip(masks.kind, masks.index, strict=True):
        if kind == 3:
            chosen.append(int(index))
        elif kind == 2:
            chosen.append(int(masks.ids[index, rng.randrange(int(masks.num_ids[index]))]))
        else:
            chosen.append(drawn(masks.bits[index], rng))
    return chosen


def _accepted(sessions: list[Session], tokens: list[int]) -> list[Session]:
    """Rows whose answer has ended begin again."""
    for session, token in zip(sessions, tokens, strict=True):
        session.accept(token)
    if any(session.is_terminated for session in sessions):
        return _sessions(len(sessions))
    return sessions
