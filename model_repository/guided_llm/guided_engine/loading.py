"""Settings to a model and tokenizer in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from guided_engine.config import EngineConfig
from guided_engine.kv_cache import CacheShape
from guided_engine.tokenizer import Tokenizer
from guided_engine.weights import resolve

_DEFAULT_LEN = 4096
_FREE_SHARE = 0.4


@dataclass(frozen=True)
class Loaded:
    """A causal language model ready to run. stop_ids: every id the model's own configuration ends on."""

    model: Any
    tokenizer: Tokenizer
    path: str
    stop_ids: frozenset[int]
    max_len: int

    @property
    def device(self) -> torch.device:
        device: torch.device = self.model.device
        return device

    @property
    def dtype(self) -> torch.dtype:
        """Of activations, and so of the cache."""
        dtype: torch.dtype = self.model.get_input_embeddings().weight.dtype
        return dtype


def load(config: EngineConfig) -> Loaded:
    """Raises ValueError for a model that the engine cannot run exactly, OSError when it is not found."""
    path, device = resolve(config.model), pick_device(config.device)
    model = AutoModelForCausalLM.from_pretrained(path, dtype=pick_dtype(config.dtype, device)).to(device).eval()
    tokenizer = AutoTokenizer.from_pretrained(path)
    stops = stop_ids(model, tokenizer)
    vocab_size = model.get_output_embeddings().weight.shape[0]
    wrapped = Tokenizer(tokenizer, vocab_size, sorted(stops))
    return Loaded(model, wrapped, path, stops, max_len(model.config.get_text_config(), config.max_model_len))


def pick_device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(name)


def pick_dtype(name: str, device: torch.device) -> torch.dtype:
    if name == "auto":
        return torch.bfloat16 if device.type == "cuda" else torch.float32
    dtype: torch.dtype = getattr(torch, name)
    return dtype


def stop_ids(model: Any, tokenizer: Any) -> frozenset[int]:
    """The end-of-text ids of the generation config and the tokenizer; models name several."""
    named = model.generation_config.eos_token_id
    ids = list(named) if isinstance(named, (list, tuple)) else [named]
    return frozenset(i for i in (*ids, tokenizer.eos_token_id) if i is not None)


def max_len(config: Any, asked: int) -> int:
    """Longest sequence; scaled rotary embeddings stay in their unscaled range, where rows don't affect each other."""
    rope = getattr(config, "rope_parameters", None) or {}
    limit = config.max_position_embeddings
    if rope.get("rope_type") in ("dynamic", "longrope"):
        limit = rope.get("original_max_position_embeddings") or getattr(
            config, "original_max_position_embeddings", limit
        )
    if asked > limit:
        raise ValueError(f"max_model_len is {asked}, but the model ends at {limit}")
    return int(asked or min(limit, _DEFAULT_LEN))


def plan_cache(config: EngineConfig, loaded: Loaded) -> CacheShape:
    """Rows and tokens that fit: the settings, bounded by a share of the memory that is free now."""
    text = loaded.model.config.get_text_config()
    heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
    dim = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    shape = CacheShape(text.num_hidden_layers, heads, dim, config.max_rows, loaded.max_len, 0)
    budget = config.kv_bytes or int(free_bytes(loaded.device) * _FREE_SHARE)
    tokens = min(config.kv_tokens or 2**62, budget // shape.token_bytes(loaded.dtype), shape.rows * shape.max_len)
    if tokens < 2:
        raise ValueError(f"the KV budget holds {tokens} tokens; a request needs at least 2")
    rows = config.max_rows
    if loaded.device.type == "cuda":
        # slots are allocated whole there; on the CPU untouched pages cost nothing
        rows = max(1, min(rows, budget // (shape.token_bytes(loaded.dtype) * shape.max_len)))
    return CacheShape(shape.layers, heads, dim, rows, shape.max_len, int(tokens))


def free_bytes(device: torch.device) -> int:
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    with open("/proc/meminfo") as file:
        fields = dict(line.split(":", 1) for line in file)
    return int(fields["MemAvailable"].split()[0]) * 1024
