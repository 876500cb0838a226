"""Validity against load: bursts, sustained windows past the batch capacity, and a budget that is too small."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterator
from dataclasses import replace

from study.job import Job, of_families
from study.lab import Lab
from study.target import say

BURST, SUSTAINED, TIGHT = "burst", "sustained", "tight_budget"
_TIGHT_TOKENS = 51


def _template(experiment: str, arm: str, level: int) -> Job:
    return Job(experiment, arm, level, "", 0, (), None, constrained=arm != "free")


async def burst_ramp(lab: Lab) -> None:
    """Both arms at each level: the same prompts, seeds and budgets, temperature 0.7 and a seed of its own each."""
    for level in lab.profile.levels:
        count = max(lab.profile.per_level, level)
        for arm in ("constrained", "free") if level <= lab.profile.free_to else ("constrained",):
            await lab.level(of_families(_template(BURST, arm, level), count), level)


async def sustained(lab: Lab) -> None:
    """Windows at a constant number of streams, the warm-up discarded; at the last level also without a pool."""
    for level in lab.profile.sustained:
        await _window(lab, "constrained", level, pooled=True)
    await _window(lab, "no_pool", lab.profile.sustained[-1], pooled=False)


async def tight_budget(lab: Lab) -> None:
    """A budget that some answers keep and some do not: which are cut must not depend on who else is running.

    The same documents at each level, as many times over as the level needs.
    """
    for level in lab.profile.levels:
        template = replace(_template(TIGHT, "constrained", level), max_tokens=_TIGHT_TOKENS, temperature=0.0)
        documents = of_families(template, lab.profile.per_level)
        rounds = range(-(-level // len(documents)))
        again = [replace(job, index=round_ * len(documents) + job.index) for round_ in rounds for job in documents]
        await lab.level(again, level)


async def _window(lab: Lab, arm: str, level: int, pooled: bool) -> None:
    say(f"{SUSTAINED}: {arm}, {level} streams for {lab.profile.warm_up + lab.profile.window:.0f} s")
    endless = _endless(_template(SUSTAINED, arm, level))
    async with lab.client(pooled) as client, asyncio.TaskGroup() as group:
        begin = time.monotonic()

        async def stream() -> None:
            while (elapsed := time.monotonic() - begin) < lab.profile.warm_up + lab.profile.window:
                job = next(endless)
                warm = elapsed >= lab.profile.warm_up
                await client.send(job if warm else replace(job, arm=f"{arm}_warm_up"))

        async with lab.watched(_template(SUSTAINED, arm, level)):
            await asyncio.gather(*(group.create_task(stream()) for _ in range(level)))


def _endless(template: Job) -> Iterator[Job]:
    for block in itertools.count():
        for job in of_families(template, 64, seed=block):
            yield replace(job, index=block * 64 + job.index)
