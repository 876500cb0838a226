"""How much of the study one run does."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Profile:
    """Counts are requests unless they say otherwise; times are in seconds.

    levels: concurrency of the burst ramp; the last ones lie past the batch capacity of 32 rows (study: 128).
    per_level: requests of one level and arm, at least the level itself. free_to: the highest level of the free arm.
    window, warm_up: of the sustained arm, at `sustained` streams.
    trials: of each keyword in the conformance probe. documents: of each family in the truncation experiment.
    distinct: schemas of the cardinality arms, `reads` requests each, at concurrency `readers`.
    two_turn, five_step: conversations, at concurrency `talkers`.
    preempted: requests against a key-value cache of `kv_tokens`.
    """

    name: str
    levels: tuple[int, ...]
    per_level: int
    free_to: int
    sustained: tuple[int, ...]
    window: float
    warm_up: float
    trials: int
    documents: int
    distinct: tuple[int, ...]
    reads: int
    readers: int
    two_turn: int
    five_step: int
    talkers: int
    preempted: int
    kv_tokens: int


PROFILES = {
    profile.name: profile
    for profile in (
        Profile(
            name="ci",
            levels=(1, 8, 32, 48),
            per_level=12,
            free_to=32,
            sustained=(40,),
            window=15,
            warm_up=5,
            trials=1,
            documents=200,
            distinct=(8, 32),
            reads=2,
            readers=16,
            two_turn=8,
            five_step=4,
            talkers=4,
            preempted=24,
            kv_tokens=1024,
        ),
        Profile(
            name="laptop",
            levels=(1, 8, 32, 64),
            per_level=64,
            free_to=64,
            sustained=(8, 48),
            window=60,
            warm_up=10,
            trials=3,
            documents=200,
            distinct=(64, 256),
            reads=3,
            readers=32,
            two_turn=32,
            five_step=16,
            talkers=8,
            preempted=64,
            kv_tokens=1024,
        ),
        Profile(
            name="gpu",
            levels=(1, 10, 50, 100, 200, 400),
            per_level=200,
            free_to=400,
            sustained=(1, 10, 50, 100, 200, 400),
            window=180,
            warm_up=30,
            trials=5,
            documents=200,
            distinct=(64, 256, 1024, 2048),
            reads=3,
            readers=50,
            two_turn=200,
            five_step=150,
            talkers=100,
            preempted=64,
            kv_tokens=2048,
        ),
    )
}
