"""What a constraint costs the engine, paired in one run: free, masked and jump-forward arms on the same prompts; and
the engine against `transformers.generate`, on a fixed batch and on requests that arrive one after the other.

    python perf/bench_engine.py [--quick] [--rows 1,8,32] [--rounds 3] [--gpu 1b|8b] [--dtype float32]

One JSON object per line. The free arm generates, per request, as many tokens as the masked one did. Times are process
time on the CPU, where others may be busy, and wall time on a GPU; `--clock` chooses.
"""

from __future__ import annotations

import argparse
import json
import statistics
from typing import Any

import torch
import transformers
from engine_cases import constrained, free, is_valid
from engine_rig import Rig, Run
from engine_rivals import against_generate, against_generate_staggered
from guided_engine.config import EngineConfig
from guided_engine.loading import Loaded, load
from stamp import stamp

MAX_TOKENS = 128
GPU_SIZES = {"1b": (2048, 16, 8192, 32, 8), "8b": (4096, 32, 14336, 32, 8)}


def say(metric: str, **fields: Any) -> None:
    print(json.dumps({"metric": metric, **fields}), flush=True)


def paired(rig: Rig, rows: int, rounds: int) -> None:
    """Ratios of the two constrained arms to the free one, per round; the median is reported with its range.

    tpot: time per token. end_to_end: time of the whole batch, prompts included; the free arm answers in as many tokens
    as the masked one, the jump arm writes a document to the same schema.
    """
    cases = constrained(rows, MAX_TOKENS)
    tpot: dict[str, list[float]] = {"masked": [], "jump": []}
    whole: dict[str, list[float]] = {"masked": [], "jump": []}
    for _ in range(rounds):
        masked = rig.run(cases, rows, jump_forward=False)
        counts = [ear.usage["completion_tokens"] for ear in masked.ears]
        runs = {
            "free": rig.run(free(cases, counts), rows, jump_forward=False),
            "masked": masked,
            "jump": rig.run(cases, rows, jump_forward=True),
        }
        base = runs["free"]
        for arm in tpot:
            tpot[arm].append(runs[arm].seconds / runs[arm].tokens / (base.seconds / base.tokens))
            whole[arm].append(runs[arm].seconds / base.seconds)
    for arm, run in runs.items():
        _describe(arm, run, rows, len(cases))
    for metric, ratios in (("tpot", tpot), ("end_to_end", whole)):
        for arm, values in ratios.items():
            say(f"constrained_over_unconstrained_{metric}", arm=arm, batch=rows, rounds=rounds,
                ratio=round(statistics.median(values), 3), low=round(min(values), 3),
                high=round(max(values), 3))  # fmt: skip
    judged = [is_valid(case, ear.text) for arm in tpot for case, ear in zip(cases, runs[arm].ears, strict=True)]
    say("valid_documents", batch=rows, valid=sum(judged), of=len(judged))


def _describe(arm: str, run: Run, rows: int, requests: int) -> None:
    forced = sum(ear.usage["forced_tokens"] for ear in run.ears)
    say("arm", arm=arm, batch=rows, tokens=run.tokens, steps=run.steps, forced=forced, seconds=round(run.seconds, 3),
        ms_per_token=round(1000 * run.seconds / run.tokens, 2), requests_per_second=round(requests / run.seconds, 3),
        first_token_ms=round(1000 * statistics.median(ear.times[0] - ear.added for ear in run.ears), 1))  # fmt: skip
    each = {stage: round(1000 * seconds / run.steps, 3) for stage, seconds in run.stages.items()}
    say("ms_per_step", arm=arm, batch=rows, python=round(each["schedule"] + each["commit"], 3), **each)


def random_model(size: str) -> Loaded:
    """A Llama of random weights on the GPU, with the embedded model's tokenizer: speed without a download."""
    hidden, layers, inner, heads, kv_heads = GPU_SIZES[size]
    small = load(EngineConfig(device="cpu"))
    config = transformers.LlamaConfig(
        vocab_size=small.tokenizer.vocabulary.vocab_size,
        hidden_size=hidden,
        num_hidden_layers=layers,
        intermediate_size=inner,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        max_position_embeddings=4096,
    )
    with torch.device("cuda"):
        model = transformers.LlamaForCausalLM._from_config(config, dtype=torch.bfloat16).eval()
    return Loaded(model, small.tokenizer, f"random-{size}", small.stop_ids, 2048)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round at 1 and 8 rows")
    parser.add_argument("--rows", default="1,8,32")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("paired", "generate", "staggered"), help="one of the three comparisons")
    parser.add_argument("--gpu", choices=sorted(GPU_SIZES), help="a random-weight model of this size on the GPU")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--clock", choices=("cpu", "wall"), help="default: cpu on the CPU, wall on a GPU")
    args = parser.parse_args()
    widths = [1, 8] if args.quick else [int(r) for r in args.rows.split(",")]
    rounds = 1 if args.quick else args.rounds
    config = EngineConfig(dtype=args.dtype, max_rows=max(widths), max_model_len=1024)
    loaded = random_model(args.gpu) if args.gpu else load(config)
    clock = args.clock or ("wall" if args.gpu else "cpu")
    say("run", model=loaded.path, device=str(loaded.device), dtype=str(loaded.dtype), clock=clock,
        threads=torch.get_num_threads(), capability=torch.backends.cpu.get_cpu_capability(), **stamp())  # fmt: skip
    rig = Rig(loaded, config, clock)
    rig.run(constrained(2, 8), 2, jump_forward=True)
    for rows in widths:
        if args.only in (None, "paired"):
            paired(rig, rows, rounds)
        if args.only in (None, "generate"):
            say("engine_over_generate_throughput", **against_generate(rig, rows, 12 if args.quick else 32, rounds))
        if args.only in (None, "staggered") and rows > 1:
            say("engine_over_generate_staggered", **against_generate_staggered(rig, rows, 3 * rows))


if __name__ == "__main__":
    main()
