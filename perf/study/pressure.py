"""Preemption forced while constrained: a key-value cache that holds a few rows, and more requests than fit."""

from __future__ import annotations

from study.job import Job, of_families
from study.lab import Lab

EXPERIMENT = "preemption"


async def run(lab: Lab) -> None:
    """Every answer must come back whole and valid, though its row was thrown out and computed again."""
    with lab.restarted({"GUIDED_KV_TOKENS": str(lab.profile.kv_tokens), "GUIDED_PREFIX_CACHE": "false"}) as starved:
        template = Job(EXPERIMENT, "constrained", lab.profile.preempted, "", 0, (), None)
        await starved.level(of_families(template, lab.profile.preempted), lab.profile.preempted)
