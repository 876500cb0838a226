"""What a constraint costs the engine, paired in one run: free, masked and jump-forward arms on the same prompts.

    python perf/bench_engine.py [--quick] [--rows 1,8,32] [--rounds 3] [--gpu 1b|8b] [--dtype float32]

One JSON object per line. The free arm generates, per request, as many tokens as the masked one did. Times are wall
and, on the CPU, process time too: on a busy machine only the latter compares.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import torch
import transformers
from guided_engine.config import EngineConfig
from guided_engine.engine import Engine
from guided_engine.grammars import Grammars
from guided_engine.loading import Loaded, load, plan_cache
from guided_engine.metrics import Metrics, StageClock
from guided_engine.protocol import Event, RequestError, SamplingParams
from guided_engine.request import Request
from guided_engine.runner import Runner
from guided_engine.sampling import prepare
from guided_engine.scheduler import Scheduler
from guided_grammar.compiler import Compiled, compile_spec
from guided_grammar.spec import GrammarSpec, Kind
from stamp import stamp

MAX_TOKENS = 128
GPU_SIZES = {"1b": (2048, 16, 8192, 32, 8), "8b": (4096, 32, 14336, 32, 8)}


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _text(limit: int) -> dict[str, Any]:
    return {"type": "string", "maxLength": limit}


FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "flat": (
        "Classify as JSON with label and confidence (0-100): I was charged twice for my order and nobody answers.",
        _object(
            label={"enum": ["billing", "shipping", "technical", "other"]},
            confidence={"type": "integer", "minimum": 0, "maximum": 100},
        ),
    ),
    "nested": (
        "Call the booking function as JSON: a table for four at Luigi's on 2024-05-02, name Alice Johnson.",
        _object(
            name={"const": "book_table"},
            arguments=_object(
                restaurant=_text(24),
                guests={"type": "integer", "minimum": 1, "maximum": 20},
                date={"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"},
                contact=_object(full_name=_text(24)),
            ),
        ),
    ),
    "enums": (
        "Triage as JSON: customer cannot log in since yesterday, password reset does not work. Ticket LMN-8080.",
        _object(
            ticket_id={"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"},
            category={"enum": ["billing", "technical_support", "account_access", "shipping", "other"]},
            priority={"enum": ["low", "medium", "high", "critical"]},
            sentiment={"enum": ["positive", "neutral", "negative"]},
            requires_human_review={"type": "boolean"},
        ),
    ),
    "array": (
        "List the items as JSON: 2 keyboards at 49.90 and 1 mouse at 19.50.",
        _object(
            items={
                "type": "array",
                "minItems": 2,
                "maxItems": 2,
                "items": _object(
                    description=_text(20),
                    quantity={"type": "integer", "minimum": 1, "maximum": 9},
                    unit_price={"type": "number", "minimum": 0, "maximum": 100},
                ),
            }
        ),
    ),
}


class Tally:
    """A metrics backend that adds up."""

    def __init__(self) -> None:
        self.sums: Counter[str] = Counter()

    def set(self, name: str, value: float) -> None:
        pass

    def add(self, name: str, value: float) -> None:
        self.sums[name] += value  # type: ignore[assignment]

    def observe(self, name: str, value: float) -> None:
        pass


class InProcess:
    """Compiles specs here: the bench measures steps, not the worker processes."""

    def compile(self, spec: GrammarSpec) -> Compiled:
        return compile_spec(spec)


@dataclass
class Ear:
    """A sink that keeps text, usage and clock readings."""

    cancelled: bool = False
    text: str = ""
    usage: dict[str, int] = field(default_factory=dict)
    times: list[float] = field(default_factory=list)
    error: RequestError | None = None

    def send(self, event: Event) -> None:
        self.text += event.text
        self.times.append(time.perf_counter())
        self.usage = dict(event.usage or {})

    def close(self, error: RequestError | None = None) -> None:
        self.error = error


@dataclass
class Run:
    """One arm: `tokens` generated in `wall` and `cpu` seconds; stages: seconds by stage."""

    wall: float
    cpu: float
    tokens: int
    steps: int
    ears: list[Ear]
    stages: dict[str, float]


class Rig:
    """An engine without transport."""

    def __init__(self, loaded: Loaded, config: EngineConfig) -> None:
        self.loaded, self.config = loaded, config
        self.runner = Runner(loaded.model, plan_cache(config, loaded), loaded.dtype)
        self.grammars = Grammars(loaded.tokenizer.vocabulary, InProcess(), config.grammar_cache_bytes)
        prepare(self.runner.vocab_size, loaded.dtype, loaded.device)

    def run(self, cases: list[tuple[str, GrammarSpec | None, int]], rows: int, jump_forward: bool) -> Run:
        """cases: prompt, constraint, tokens to generate (exactly, when free); `rows` are under way at a time."""
        tally = Tally()
        # no prefix copies: every arm reads its prompts
        scheduler = Scheduler(self.runner.cache, self.config.step_tokens, 3600.0, prefix_cache=False)
        clock = StageClock(time.process_time if self.loaded.device.type == "cpu" else time.perf_counter)
        engine = Engine(scheduler, self.runner, self.grammars, 4096, Metrics(tally), print, clock)
        ears = [Ear() for _ in cases]
        waiting = [self._request(e, *case, jump_forward) for e, case in zip(ears, cases, strict=True)][::-1]
        wall, cpu = time.perf_counter(), time.process_time()
        while waiting or scheduler.requests:
            while waiting and len(scheduler.requests) < rows:
                scheduler.add(waiting.pop())
            engine.step_and_deliver()
        if self.loaded.device.type == "cuda":
            torch.cuda.synchronize()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        seconds = {n.split("_")[1]: v for n, v in tally.sums.items() if n.endswith("_seconds_total")}
        stages = {stage: round(float(v), 4) for stage, v in seconds.items()}
        tokens = sum(ear.usage["completion_tokens"] for ear in ears)
        return Run(wall, cpu, tokens, int(tally.sums["guided_steps_total"]), ears, stages)

    def _request(self, ear: Ear, prompt: str, spec: GrammarSpec | None, count: int, jump: bool) -> Request:
        constrained = None if spec is None else self.grammars.matchers(spec.to_json(), 1)
        return Request(
            self.loaded.tokenizer.encode(prompt),
            SamplingParams(temperature=0.0),
            ear,
            max_tokens=count,
            stop_ids=frozenset(),
            pieces=self.loaded.tokenizer.pieces(),
            matchers=constrained.matchers if constrained else None,
            jump_forward=jump,
        )


def chat(text: str) -> str:
    return f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"


def batch_of(rows: int) -> list[tuple[str, GrammarSpec]]:
    """`rows` requests, at least one of each family; numbered, so that no two prompts are equal."""
    families = list(FAMILIES.values())
    chosen = [families[i % len(families)] for i in range(max(rows, len(families)))]
    return [(chat(f"({i}) {p}"), GrammarSpec(Kind.JSON_SCHEMA, {"schema": s})) for i, (p, s) in enumerate(chosen)]


def say(metric: str, **fields: Any) -> None:
    print(json.dumps({"metric": metric, **fields}), flush=True)


def paired(rig: Rig, rows: int, rounds: int, clock: str) -> None:
    """Ratios of the two constrained arms to the free one, per round; the median is reported with its range."""
    batch = batch_of(rows)
    ratios: dict[str, list[float]] = {"masked": [], "jump": []}
    last: dict[str, Run] = {}
    for _ in range(rounds):
        masked = rig.run([(p, s, MAX_TOKENS) for p, s in batch], rows, jump_forward=False)
        counts = [ear.usage["completion_tokens"] for ear in masked.ears]
        free = rig.run([(p, None, n) for (p, _), n in zip(batch, counts, strict=True)], rows, jump_forward=False)
        jump = rig.run([(p, s, MAX_TOKENS) for p, s in batch], rows, jump_forward=True)
        last = {"free": free, "masked": masked, "jump": jump}
        base = getattr(free, clock) / free.tokens
        for arm in ratios:
            ratios[arm].append(getattr(last[arm], clock) / last[arm].tokens / base)
    for arm, run in last.items():
        seconds = getattr(run, clock)
        say("arm", arm=arm, rows=rows, clock=clock, tokens=run.tokens, steps=run.steps, seconds=round(seconds, 3),
            ms_per_token=round(1000 * seconds / run.tokens, 2), requests_per_second=round(len(batch) / seconds, 3),
            forced=sum(ear.usage["forced_tokens"] for ear in run.ears), stages=run.stages)  # fmt: skip
    for arm, values in ratios.items():
        say("constrained_over_unconstrained_tpot", arm=arm, batch=rows, ratio=round(statistics.median(values), 3),
            low=round(min(values), 3), high=round(max(values), 3), rounds=rounds, clock=clock)  # fmt: skip
    overhead = {arm: sum(v for k, v in run.stages.items() if k in ("schedule", "commit")) for arm, run in last.items()}
    say("python_ms_per_step", rows=rows,
        **{arm: round(1000 * overhead[arm] / run.steps, 3) for arm, run in last.items()})  # fmt: skip
    valid = sum(_is_whole(ear.text) for arm in ("masked", "jump") for ear in last[arm].ears)
    say("whole_documents", rows=rows, whole=valid, of=2 * len(batch))


def _is_whole(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def against_generate(rig: Rig, loaded: Loaded, rows: int, count: int, clock: str) -> None:
    """A fixed batch of free answers: the engine, and `transformers.generate` with the model's own attention."""
    ids = [loaded.tokenizer.encode(p) for p, _ in batch_of(rows)[:rows]]
    ours = rig.run([(p, None, count) for p, _ in batch_of(rows)[:rows]], rows, jump_forward=False)
    width = max(map(len, ids))
    pad = [[0] * (width - len(i)) for i in ids]
    tokens = torch.tensor([p + i for p, i in zip(pad, ids, strict=True)], device=loaded.device)
    seen = torch.tensor([[0] * len(p) + [1] * len(i) for p, i in zip(pad, ids, strict=True)], device=loaded.device)
    loaded.model.set_attn_implementation("sdpa")
    wall, cpu = time.perf_counter(), time.process_time()
    loaded.model.generate(tokens, attention_mask=seen, max_new_tokens=count, min_new_tokens=count, do_sample=False,
                          pad_token_id=0)  # fmt: skip
    seconds = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}[clock]
    loaded.model.set_attn_implementation("guided_slots")
    mine = getattr(ours, clock)
    say("engine_over_generate_throughput", rows=rows, tokens_each=count, clock=clock, engine_seconds=round(mine, 3),
        generate_seconds=round(seconds, 3), ratio=round(seconds / mine, 3))  # fmt: skip


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
    parser.add_argument("--gpu", choices=sorted(GPU_SIZES), help="a random-weight model of this size on the GPU")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--clock", choices=("cpu", "wall"), help="default: cpu on the CPU, wall on a GPU")
    args = parser.parse_args()
    widths = [1, 8] if args.quick else [int(r) for r in args.rows.split(",")]
    config = EngineConfig(dtype=args.dtype, max_rows=max(widths), max_model_len=1024)
    loaded = random_model(args.gpu) if args.gpu else load(config)
    clock = args.clock or ("wall" if args.gpu else "cpu")
    say("run", model=loaded.path, device=str(loaded.device), dtype=str(loaded.dtype),
        threads=torch.get_num_threads(), capability=torch.backends.cpu.get_cpu_capability(), **stamp())  # fmt: skip
    rig = Rig(loaded, config)
    rig.run([(p, s, 8) for p, s in batch_of(2)], 2, jump_forward=True)
    for rows in widths:
        paired(rig, rows, 1 if args.quick else args.rounds, clock)
        against_generate(rig, loaded, rows, 12 if args.quick else 32, clock)


if __name__ == "__main__":
    main()
