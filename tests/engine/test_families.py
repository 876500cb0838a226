"""Tiny random models of each family: the engine's greedy answers are those of `model.generate`, one request alone."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import transformers
from guided_engine.attention import NAME
from guided_engine.engine import Engine
from guided_engine.kv_cache import CacheShape
from guided_engine.loading import max_len
from guided_engine.metrics import Metrics
from guided_engine.protocol import SamplingParams
from guided_engine.request import Request
from guided_engine.runner import Runner
from guided_engine.scheduler import Scheduler
from guided_testing.engine_fakes import ByteMasks, Listener, Numbers

VOCAB, EOS = 300, 299
SIZES = {
    "vocab_size": VOCAB,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "eos_token_id": EOS,
    "bos_token_id": 1,
    "pad_token_id": 0,
}
WINDOW = {"sliding_window": 16}
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", {}),
    "qwen2": ("Qwen2", {}),
    "qwen3": ("Qwen3", {"head_dim": 16}),
    "mistral": ("Mistral", WINDOW),
    "gemma": ("Gemma", {"head_dim": 16}),
    "gemma2": ("Gemma2", {**WINDOW, "head_dim": 16}),
    "gemma3": ("Gemma3Text", {**WINDOW, "head_dim": 16, "layer_types": ["sliding_attention"] * 2 + ["full_attention"]}),
    "phi": ("Phi", {}),
    "phi3": ("Phi3", WINDOW),
    "smollm3": ("SmolLM3", {}),
}
CAUSAL_LM = {"Gemma3Text": "Gemma3ForCausalLM"}


@pytest.fixture(params=FAMILIES)
def model(request: pytest.FixtureRequest) -> Iterator[Any]:
    name, extra = FAMILIES[request.param]
    torch.manual_seed(3)
    config = getattr(transformers, f"{name}Config")(**SIZES, **extra)
    made = getattr(transformers, CAUSAL_LM.get(name, f"{name}ForCausalLM"))(config).eval()
    with torch.no_grad():
        for weight in made.parameters():
            # at their initial scale every model of this size says one token for ever
            weight.mul_(4.0 if weight.ndim > 1 else 1.0)
    yield made


def expected(model: Any, prompt: list[int], count: int) -> list[int]:
    out = model.generate(
        torch.tensor([prompt]), max_new_tokens=count, do_sample=False, eos_token_id=EOS, pad_token_id=0
    )
    answer = out[0, len(prompt) :].tolist()
    return answer[: answer.index(EOS)] if EOS in answer else answer


def engine_for(
    model: Any, rows: int, tokens: int, step_tokens: int, batch_invariant: bool = False
) -> tuple[Engine, Scheduler]:
    config = model.config
    dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    heads = config.num_key_value_heads
    shape = CacheShape(config.num_hidden_layers, heads, dim, rows, 128, tokens)
    runner = Runner(model, shape, torch.float32, batch_invariant)
    scheduler = Scheduler(runner.cache, step_tokens, 60.0)
    return Engine(scheduler, runner, ByteMasks(), 64, Metrics(Numbers()), print), scheduler


def test_greedy_answers_equal_generate_while_rows_join_leave_and_are_preempted(model: Any) -> None:
    rng = random.Random(11)
    shared = [rng.randrange(2, EOS) for _ in range(20)]
    prompts = [shared * (i % 2) + [rng.randrange(2, EOS) for _ in range(rng.randint(1, 45))] for i in range(10)]
    counts = [rng.randint(1, 24) for _ in prompts]
    wanted = [expected(model, p, n) for p, n in zip(prompts, counts, strict=True)]
    engine, scheduler = engine_for(model, rows=4, tokens=150, step_tokens=24)
    assert model.config._attn_implementation == NAME
    heard = []
    for prompt, count in zip(prompts, counts, strict=True):
        heard.append(Listener())
        scheduler.add(_request(prompt, count, heard[-1]))
        for _ in range(rng.randint(0, 3)):
            engine.step_and_deliver()
    while scheduler.requests:
        engine.step_and_deliver()
    assert [[t for e in h.events for t in e.token_ids] for h in heard] == wanted
    assert scheduler.num_preempted > 0 and len({tuple(w) for w in wanted}) > 5


def drawn(engine: Engine, scheduler: Scheduler, prompts: list[list[int]], seeds: list[int]) -> list[Any]:
    """Ids and log-probs of seeded answers that start a step apart."""
    heard = []
    for prompt, seed in zip(prompts, seeds, strict=True):
        heard.append(Listener())
        law = SamplingParams(temperature=1.0, seed=seed, logprobs=1)
        scheduler.add(_request(prompt, 12, heard[-1], law))
        engine.step_and_deliver()
    while scheduler.requests:
        engine.step_and_deliver()
    return [[(t.token_id, t.logprob) for e in h.events for t in e.logprobs or ()] for h in heard]


def test_a_seeded_answer_is_the_same_to_the_bit_alone_and_in_any_company(model: Any) -> None:
    rng = random.Random(7)
    shared = [rng.randrange(2, EOS) for _ in range(20)]
    prompts = [shared * (i % 2) + [rng.randrange(2, EOS) for _ in range(rng.randint(1, 45))] for i in range(16)]
    engine, scheduler = engine_for(model, 16, 1000, 24, batch_invariant=True)
    together = drawn(engine, scheduler, prompts, list(range(16)))
    for i in (0, 7, 15):
        assert drawn(engine, scheduler, [prompts[i]], [i]) == [together[i]]
    assert together[0] != drawn(engine, scheduler, [prompts[0]], [99])[0]


def _request(prompt: list[int], count: int, listener: Listener, law: SamplingParams | None = None) -> Request:
    return Request(
        prompt,
        law or SamplingParams(temperature=0.0),
        listener,
        max_tokens=count,
        stop_ids=frozenset({EOS}),
        pieces=[b"x"] * VOCAB,
    )


@pytest.mark.parametrize(
    ("rope", "asked", "length"),
    [
        ({"rope_type": "default"}, 0, 4096),
        ({"rope_type": "default"}, 300, 300),
        ({"rope_type": "longrope", "original_max_position_embeddings": 2048}, 0, 2048),
    ],
)
def test_the_context_stays_where_rows_do_not_affect_each_other(rope: dict[str, Any], asked: int, length: int) -> None:
    config = transformers.LlamaConfig(max_position_embeddings=8192)
    config.rope_parameters = rope
    assert max_len(config, asked) == length


def test_a_context_longer_than_the_models_is_refused_with_both_numbers() -> None:
    with pytest.raises(ValueError, match="max_model_len is 9000, but the model ends at 8192"):
        max_len(transformers.LlamaConfig(max_position_embeddings=8192), 9000)


@pytest.mark.parametrize(
    ("family", "extra", "message"),
    [
        (
            "GptOss",
            {"num_experts_per_tok": 1, "layer_types": ["full_attention"] * 3},
            "attention is not one this engine computes",
        ),
        ("Qwen3Next", {}, "linear_attention"),
    ],
)
def test_a_model_with_other_attention_is_refused(family: str, extra: dict[str, Any], message: str) -> None:
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**SIZES, head_dim=16, num_experts=2, num_local_experts=2, **extra)
    made = getattr(transformers, f"{family}ForCausalLM")(config).eval()
    with pytest.raises(ValueError, match=message):
        engine_for(made, 1, 100, 8)
