"""Mask and sample on the CPU: ours against xgrammar's CPU kernel followed by torch, in one run and one thread.

    python perf/bench_sample.py [--out bench_sample.jsonl] [--rounds 60] [--markdown]

All implementations of a case take turns, round by round, so that a busy machine slows each of them alike; restoring the
logits that xgrammar overwrites is not timed. Both sides start from the same int32 bitmask. One JSON line per case and
implementation (median and minimum, us a step of all its rows), stamped with commit, versions and machine.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xgrammar
from guided_kernels.params import SampleParams
from guided_kernels.rows import BITS, Rows
from guided_kernels.sample import sample
from stamp import stamp

OURS, PEER, RACE = "ours", "xgrammar + torch", "xgrammar + torch, exponential race"
MASKS = ("sparse", "dense", "real sparse", "real dense")


@dataclass(frozen=True)
class Case:
    """vocab x num_rows float32 logits; draw: "greedy", "sampled" or "filtered" (top-k 50, top-p 0.9)."""

    vocab: int
    num_rows: int
    masks: str
    draw: str


def cases() -> Iterator[Case]:
    """The masks of 100 random tokens and of 98.2 % of all; on 131,072 tokens real ones too (see gpu_check.py)."""
    for vocab in (49_152, 131_072):
        for masks in MASKS if vocab == 131_072 else MASKS[:2]:
            for draw in ("greedy", "sampled", "filtered"):
                for num_rows in (1, 8, 32):
                    yield Case(vocab, num_rows, masks, draw)


def bitmask(case: Case) -> torch.Tensor:
    """int32[num_rows, vocab // 32]."""
    noise = np.random.default_rng(0)
    if case.masks.startswith("real"):
        stored = np.load(Path(__file__).parent / "masks.npz")
        words, count = stored["tekken"], stored["tekken_count"].astype(float)
        dense = np.unpackbits(words.view(np.uint8), axis=1).mean(1) > 0.5
        count[dense != (case.masks == "real dense")] = 0
        return torch.from_numpy(words[noise.choice(len(words), case.num_rows, p=count / count.sum())])
    allowed = noise.random((case.num_rows, case.vocab)) < 0.982
    if case.masks == "sparse":
        allowed[:] = False
        for row in allowed:
            row[noise.choice(case.vocab, 100, replace=False)] = True
    return torch.from_numpy(np.packbits(allowed, axis=1, bitorder="little").view("<i4").copy())


def implementations(case: Case, logits: torch.Tensor, mask: torch.Tensor) -> dict[str, Callable[[], Any]]:
    """Each takes one step; all but ours write to the logits."""
    greedy, filtered = case.draw == "greedy", case.draw == "filtered"
    rows = Rows.unconstrained(case.num_rows)
    rows = replace(rows, kind=rows.kind + BITS, index=torch.arange(case.num_rows, dtype=torch.int32), bits=mask)
    law = SampleParams.greedy(case.num_rows)
    if not greedy:
        law = replace(law, temperature=law.temperature + 0.8)
    if filtered:
        law = replace(law, top_k=law.top_k + 50, top_p=law.top_p - 0.1)

    def apply() -> torch.Tensor:
        xgrammar.apply_token_bitmask_inplace(logits, mask)
        return logits if greedy else _narrowed(logits / 0.8) if filtered else logits / 0.8

    if greedy:
        return {OURS: lambda: sample(logits, rows, law, logprobs="none"), PEER: lambda: apply().argmax(-1)}
    return {
        OURS: lambda: sample(logits, rows, law, logprobs="none"),
        PEER: lambda: torch.multinomial(torch.softmax(apply(), -1), 1),
        RACE: lambda: _race(torch.softmax(apply(), -1)),
    }


def _race(probability: torch.Tensor) -> torch.Tensor:
    return (probability / torch.empty_like(probability).exponential_()).argmax(-1)


def _narrowed(logits: torch.Tensor) -> torch.Tensor:
    """top-k 50, then top-p 0.9 among them, by sorting 50 values rather than all."""
    values, ids = logits.topk(50)
    probability = torch.softmax(values, -1)
    values = values.masked_fill(probability.cumsum(-1) - probability >= 0.9, -torch.inf)
    return torch.full_like(logits, -torch.inf).scatter(-1, ids, values)


def measured(case: Case, rounds: int) -> dict[str, list[float]]:
    """us by implementation and round."""
    pristine = 3 * torch.randn(case.num_rows, case.vocab, generator=torch.Generator().manual_seed(0))
    logits, mask = pristine.clone(), bitmask(case)
    steps = implementations(case, logits, mask)
    times: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(rounds + 2):
        for name, step in steps.items():
            logits.copy_(pristine)
            start = time.perf_counter_ns()
            step()
            elapsed = time.perf_counter_ns() - start
            if turn >= 2:
                times[name].append(elapsed / 1e3)
    return times


def markdown(records: list[dict[str, Any]]) -> Iterator[str]:
    """A table of medians."""
    yield "| vocabulary | rows | masks | draw | ours, us | xgrammar + torch, us | ratio | with a race, us | ratio |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for record in records:
        case, median = record["case"], record["median_us"]
        ours, peer, race = median[OURS], median[PEER], median.get(RACE)
        tail = f"{race:,.0f} | {race / ours:.1f}" if race else "|"
        head = f"| {case['vocab']:,} | {case['num_rows']} | {case['masks']} | {case['draw']}"
        yield f"{head} | {ours:,.0f} | {peer:,.0f} | {peer / ours:.1f} | {tail} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("bench_sample.jsonl"))
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--markdown", action="store_true", help="also print the table")
    options = parser.parse_args()
    torch.set_num_threads(1)
    records = []
    with options.out.open("w") as stream:
        stream.write(json.dumps(stamp()) + "\n")
        for case in cases():
            times = measured(case, options.rounds)
            record = {
                "case": asdict(case),
                "median_us": {name: round(float(np.median(taken)), 1) for name, taken in times.items()},
                "min_us": {name: round(min(taken), 1) for name, taken in times.items()},
            }
            records.append(record)
            stream.write(json.dumps(record) + "\n")
            stream.flush()
    if options.markdown:
        print("\n".join(markdown(records)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
