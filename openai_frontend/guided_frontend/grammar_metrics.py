"""The compile processes' counters, read when somebody scrapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from guided_grammar.pool import PoolStats
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from guided_frontend.versions import packages

_NAME = "guided_frontend_grammar_"


class GrammarCollector(Collector):
    """`stats` is called at each scrape, from any thread."""

    def __init__(self, stats: Callable[[], PoolStats]) -> None:
        self._stats = stats

    def collect(self) -> Iterator[Metric]:
        stats = self._stats()
        known = stats.outcomes
        yield GaugeMetricFamily(f"{_NAME}waiting", "Constraints that wait for a worker process.", stats.num_waiting)
        yield GaugeMetricFamily(f"{_NAME}cache_bytes", "Bytes of outcomes kept.", known.bytes)
        yield GaugeMetricFamily(f"{_NAME}cache_entries", "Outcomes of compiles kept, refusals included.", known.entries)
        yield CounterMetricFamily(f"{_NAME}cache_hits", "Constraints whose outcome was known.", known.hits)
        yield CounterMetricFamily(f"{_NAME}cache_misses", "Constraints given to a worker.", known.misses)
        yield CounterMetricFamily(f"{_NAME}cache_evictions", "Outcomes dropped for want of room.", known.evictions)
        yield CounterMetricFamily(f"{_NAME}worker_seconds", "Time that workers spent on compiles.", stats.seconds)
        kills = CounterMetricFamily(f"{_NAME}kills", "Workers lost: time, memory, crash.", labels=["reason"])
        for reason, number in vars(stats.kills).items():
            kills.add_metric([reason], number)
        yield kills
        found = {name.replace("-", "_"): number or "absent" for name, number in packages().items()}
        versions = GaugeMetricFamily("guided_frontend_versions", "1; labels are versions.", labels=list(found))
        versions.add_metric(list(found.values()), 1)
        yield versions
