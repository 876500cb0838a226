"""The masks of one decoding step, each row in the cheapest form that says which tokens are legal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

MAX_IDS = 1024


class RowKind(IntEnum):
    """What `StepMasks.index` of a row refers to."""

    UNCONSTRAINED = 0
    BITS = 1
    IDS = 2
    FORCED = 3


@dataclass(frozen=True)
class StepMasks:
    """Legal tokens of each row of a step; all arrays C-contiguous int32.

    kind [rows]: `RowKind`. index [rows]: row of `bits` | row of `ids` | the one legal token id; 0 if unconstrained.
    bits [b, words]: token i is legal when bit i % 32 of word i // 32 is set; words = ceil(vocab_size / 32).
    ids [k, 1024] and num_ids [k]: ids[j, :num_ids[j]] are the legal tokens, ascending; the rest is 0. num_ids >= 2.
    failed: rows without any legal token. They read as unconstrained here; the caller must end them, not sample them.
    """

    kind: NDArray[np.int32]
    index: NDArray[np.int32]
    bits: NDArray[np.int32]
    ids: NDArray[np.int32]
    num_ids: NDArray[np.int32]
    failed: tuple[int, ...] = ()


class Masked(Protocol):
    """A row's position in its grammar: `guided_grammar.session.Session`, or something around one."""

    @property
    def is_terminated(self) -> bool: ...

    def fill(self, bits: NDArray[np.int32], row: int) -> bool: ...


def fill(sessions: Sequence[Masked | None], vocab_size: int) -> StepMasks:
    """Masks for the next token of each row; None rows are unconstrained, terminated ones fail."""
    rows = len(sessions)
    kind, index = np.zeros(rows, np.int32), np.zeros(rows, np.int32)
    scratch = np.zeros((1, -(-vocab_size // 32)), np.int32)
    dense: list[NDArray[np.int32]] = []
    sparse: list[NDArray[np.int32]] = []
    failed: list[int] = []
    for row, session in enumerate(sessions):
        if session is None:
            continue
        if session.is_terminated:
            failed.append(row)
            continue
        scratch.fill(0)
        if not session.fill(scratch, 0):
            continue
        legal = legal_ids(scratch[0])
        if legal is None:
            kind[row], index[row] = RowKind.BITS, len(dense)
            dense.append(scratch[0].copy())
        elif len(legal) > 1:
            kind[row], index[row] = RowKind.IDS, len(sparse)
            sparse.append(legal)
        elif len(legal) == 1:
            kind[row], index[row] = RowKind.FORCED, legal[0]
        else:
            failed.append(row)
    bits = np.stack(dense) if dense else np.zeros((0, scratch.shape[1]), np.int32)
    ids = np.zeros((len(sparse), MAX_IDS), np.int32)
    for at, legal in enumerate(sparse):
        ids[at, : len(legal)] = legal
    num_ids = np.array([len(legal) for legal in sparse], dtype=np.int32)
    return StepMasks(kind, index, bits, ids, num_ids, tuple(failed))


def legal_ids(words: NDArray[np.int32]) -> NDArray[np.int32] | None:
    """Ids of the set bits of one mask row, ascending; None when there are more than 1024."""
    occupied = np.flatnonzero(words)
    if len(occupied) > MAX_IDS:
        return None
    octets = words[occupied].astype("<i4").view(np.uint8).reshape(len(occupied), 4)
    at, bit = np.nonzero(np.unpackbits(octets, axis=1, bitorder="little"))
    if len(at) > MAX_IDS:
        return None
    return (occupied[at] * 32 + bit).astype(np.int32)
