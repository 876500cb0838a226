"""Bystanders' pace while the hostile corpus runs, and answers while worker processes are killed."""

from __future__ import annotations

import json
import os
import random
import signal
import statistics
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))

from guided_testing.hostile import hostile_bodies, hostile_fields

from isolation.family import Live, live, watched
from isolation.streams import Streams, streaming

_QUIET_SECONDS = 45.0
_SETTLE_SECONDS = 8.0
_KILL_SECONDS = 2.0


def bystanders(attackers: int) -> Iterator[dict[str, Any]]:
    """Eight streams, quiet, beside the corpus, and quiet again; one row each, then one of the corpus, one of memory."""
    with live({}) as running, watched(running) as peaks, streaming(running.url, 8, constrained=4) as streams:
        time.sleep(_SETTLE_SECONDS)
        stretches = {"quiet": _timed(lambda: time.sleep(_QUIET_SECONDS))}
        answers: list[tuple[str, int, float]] = []
        stretches["hostile"] = _timed(lambda: answers.extend(_corpus(running.url, attackers)))
        stretches["quiet again"] = _timed(lambda: time.sleep(_QUIET_SECONDS))
        still_serves = _answers(running.url)
        counters = engine_counters(running)
    quiet = statistics.median(streams.gaps(*stretches["quiet"]))
    for name, stretch in stretches.items():
        yield {"part": "bystanders", "stretch": name, **_pace(streams, stretch, quiet)}
    slowest = sorted(answers, key=lambda answer: -answer[2])
    yield {
        "part": "corpus",
        "attackers": attackers,
        "requests": len(answers),
        "statuses": dict(Counter(str(status) for _, status, _ in answers)),
        "slowest_s": {name: round(seconds, 2) for name, _, seconds in slowest[:5]},
        "still_serves": still_serves,
        "kills": {k.removeprefix("guided_grammar_kills_"): v for k, v in counters.items() if "_kills_" in k},
        "over_budget_rows": counters.get("guided_over_budget_rows_total", 0.0),
    }
    for part, peak in sorted(peaks.items()):
        sizes = {"rss_mib": round(peak.rss / 2**20), "limit_mib": round(peak.limit / 2**20)}
        yield {"part": "memory", "process": part, **sizes, "processes_seen": len(peak.pids)}


def kills(seconds: float) -> Iterator[dict[str, Any]]:
    """16 constrained streams, each request with a new schema, while a random worker is killed at a steady pace."""
    rng, killed = random.Random(0), Counter[str]()
    with live({}) as running, streaming(running.url, 16, constrained=16, distinct=True, max_tokens=160) as streams:
        time.sleep(_SETTLE_SECONDS)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            workers = [m for m in running.members() if m.limit]
            if workers:
                victim = rng.choice(workers)
                os.kill(victim.pid, signal.SIGKILL)
                killed[victim.part] += 1
            time.sleep(_KILL_SECONDS)
        still_serves = _answers(running.url)
        counters = engine_counters(running)
    outcomes = Counter(f"{e.status} {e.outcome}" if e.status != 200 else e.outcome for e in streams.ended)
    yield {
        "part": "kills",
        "seconds": seconds,
        "kill_every_s": _KILL_SECONDS,
        "killed": dict(killed),
        "answers": len(streams.ended),
        "outcomes": dict(outcomes.most_common(8)),
        "still_serves": still_serves,
        "crash_kills_counted_by_engine": counters.get("guided_grammar_kills_crash_total", 0.0),
    }


def engine_counters(running: Live) -> dict[str, float]:
    """Our counters and gauges on tritonserver's /metrics, without labels."""
    with urllib.request.urlopen(running.metrics_url, timeout=10) as response:
        lines = response.read().decode().splitlines()
    rows = (line.rpartition(" ") for line in lines if line.startswith("guided_") and "_bucket" not in line)
    return {name.partition("{")[0]: float(value) for name, _, value in rows}


def _timed(act: Any) -> tuple[float, float]:
    begin = time.monotonic()
    act()
    return begin, time.monotonic()


def _pace(streams: Streams, stretch: tuple[float, float], quiet: float) -> dict[str, float]:
    gaps = sorted(streams.gaps(*stretch))
    median = statistics.median(gaps)
    return {
        "seconds": round(stretch[1] - stretch[0], 1),
        "gaps": len(gaps),
        "p50_ms": round(median * 1e3, 1),
        "p95_ms": round(gaps[int(len(gaps) * 0.95)] * 1e3, 1),
        "p99_ms": round(gaps[int(len(gaps) * 0.99)] * 1e3, 1),
        "ratio_p50": round(median / quiet, 3),
    }


def _corpus(url: str, attackers: int) -> list[tuple[str, int, float]]:
    """(name, status, seconds) of each hostile request; `attackers` send at a time."""
    message = {"messages": [{"role": "user", "content": "Go."}], "max_tokens": 8}
    bodies = {name: json.dumps({**message, **fields}).encode() for name, fields in hostile_fields().items()}
    left = [*(bodies | hostile_bodies()).items()]
    answers: list[tuple[str, int, float]] = []

    def attack() -> None:
        with httpx.Client(timeout=60) as client:
            while left:
                try:
                    name, body = left.pop()
                except IndexError:
                    return
                begin = time.monotonic()
                headers = {"Content-Type": "application/json"}
                status = client.post(f"{url}/chat/completions", content=body, headers=headers).status_code
                answers.append((name, status, time.monotonic() - begin))

    threads = [threading.Thread(target=attack) for _ in range(attackers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def _answers(url: str) -> bool:
    body = {"messages": [{"role": "user", "content": "Is fire hot?"}], "guided_choice": ["yes", "no"]}
    answer = httpx.post(f"{url}/chat/completions", json=body, timeout=60)
    return answer.status_code == 200 and answer.json()["choices"][0]["message"]["content"] in ("yes", "no")
