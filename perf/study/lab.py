"""What an experiment is given: how much to do, where to write, and which server to ask."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

from study.client import Client, burst, connect
from study.job import Job
from study.profiles import Profile
from study.records import Journal
from study.target import Target, own_stack, say

_SAMPLE_S = 0.5
_PEAKS = ("guided_running_rows", "guided_waiting_choices", "guided_kv_tokens", "guided_grammar_cache_bytes")
_TOTALS = (
    "guided_preempted_choices_total",
    "guided_forced_tokens_total",
    "guided_generated_tokens_total",
    "guided_steps_total",
    "guided_grammar_cache_hits_total",
    "guided_grammar_cache_misses_total",
    "guided_grammar_cache_evictions_total",
    *(f"guided_{stage}_seconds_total" for stage in ("schedule", "forward", "mask", "head", "sample", "commit")),
)


@dataclass(frozen=True)
class Lab:
    """`target` serves with the default settings. `owned` says that servers with other settings may be started."""

    profile: Profile
    journal: Journal
    target: Target
    owned: bool

    @contextmanager
    def restarted(self, environ: Mapping[str, str]) -> Iterator[Lab]:
        """A lab over a server of its own with these settings."""
        with own_stack(environ) as target:
            yield Lab(self.profile, self.journal, target, self.owned)

    async def level(self, jobs: Iterable[Job], concurrency: int, pooled: bool = True) -> None:
        """One burst, with the server's metrics over it written as a fact."""
        asked = list(jobs)
        say(f"{asked[0].experiment}: {asked[0].arm}, {len(asked)} requests at {concurrency}")
        async with self.client(pooled) as client, self.watched(asked[0]):
            await burst(client, asked, concurrency)

    def client(self, pooled: bool = True) -> contextlib.AbstractAsyncContextManager[Client]:
        return connect(self.target.base_url, self.target.model, self.journal, pooled)

    @asynccontextmanager
    async def watched(self, job: Job) -> AsyncIterator[None]:
        """Peaks and totals of the engine's metrics over the body, as a fact under the job's arm and level."""
        before = await asyncio.to_thread(self.target.metrics)
        peaks = dict.fromkeys(_PEAKS, 0.0)
        sampler = asyncio.create_task(self._sample(peaks))
        try:
            yield
        finally:
            sampler.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await sampler
        after = await asyncio.to_thread(self.target.metrics)
        totals = {name: round(after.get(name, 0) - before.get(name, 0), 4) for name in _TOTALS}
        if after:
            self.journal.fact(job.experiment, arm=job.arm, level=job.level, **peaks, **totals)

    async def _sample(self, peaks: dict[str, float]) -> None:
        while True:
            now = await asyncio.to_thread(self.target.metrics)
            for name in peaks:
                peaks[name] = max(peaks[name], now.get(name, 0.0))
            await asyncio.sleep(_SAMPLE_S)
