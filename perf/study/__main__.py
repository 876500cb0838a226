"""`make study PROFILE=ci`: every experiment against one server, then perf/report.

With --base-url the study runs against any OpenAI-compatible server; experiments that need a server with other settings
(cardinality, preemption) run only against a stack of our own.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from pathlib import Path

from tokenizers import Tokenizer

from study import agents, cardinality, pace, pressure, probe, ramp, report, truncation
from study.lab import Lab
from study.profiles import PROFILES
from study.records import Journal, load
from study.target import Target, own_stack, resolve_model, say

_JOURNAL = "requests.jsonl.gz"
_LIVE: tuple[Callable[[Lab], Awaitable[None]], ...] = (
    ramp.burst_ramp,
    ramp.sustained,
    ramp.tight_budget,
    pace.run,
    agents.run,
    probe.live,
)
_RESTARTING: tuple[Callable[[Lab], Awaitable[None]], ...] = (cardinality.run, pressure.run)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make study", description=__doc__)
    parser.add_argument("--profile", choices=sorted(PROFILES), default="ci")
    parser.add_argument("--base-url", help="of a running server, with /v1; default: start one")
    parser.add_argument("--model", default="guided_llm", help="model name at --base-url")
    parser.add_argument("--metrics-url", default="", help="the engine's /metrics at --base-url")
    parser.add_argument("--tokenizer", help="tokenizer.json of the model; default: that of the embedded model")
    parser.add_argument("--report-only", action="store_true", help="run nothing: the page anew, of what --out holds")
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parents[1] / "report")
    return parser.parse_args(arguments)


async def experiments(lab: Lab) -> None:
    """One after the other, each on a server that is idle otherwise."""
    for experiment in _LIVE:
        begin = time.monotonic()
        await experiment(lab)
        say(f"{experiment.__module__}.{experiment.__name__}: {time.monotonic() - begin:.0f} s")


async def restarting(lab: Lab) -> None:
    for experiment in _RESTARTING:
        await experiment(lab)


def main(arguments: list[str]) -> int:
    given = parse(arguments)
    if not given.report_only:
        measure(given)
    report.write(load(given.out / _JOURNAL), given.out)
    say(f"report: {given.out / 'README.md'}")
    return 0


def measure(given: argparse.Namespace) -> None:
    """Everything that the profile asks for, into a new journal."""
    profile, begin = PROFILES[given.profile], time.monotonic()
    journal = Journal(given.out / _JOURNAL)
    tokenizer = given.tokenizer or str(resolve_model("smollm2-135m-instruct") / "tokenizer.json")
    truncation.run(journal, Tokenizer.from_file(tokenizer), profile.documents)
    probe.offline(journal)
    owned = given.base_url is None
    target = own_stack({}) if owned else nullcontext(Target(given.base_url, given.model, given.metrics_url))
    with target as served:
        asyncio.run(experiments(Lab(profile, journal, served, owned)))
    if owned:
        asyncio.run(restarting(Lab(profile, journal, served, owned)))
    server = "tritonserver with SmolLM2-135M-Instruct, float32, on the CPU" if owned else given.base_url
    journal.fact(report.RUN, **report.told_of(profile, server, time.monotonic() - begin))
    journal.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
