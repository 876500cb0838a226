"""Tokenizers to walk over: real ones from folders, and one of single bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from guided_engine.tokenizer import Tokenizer
from guided_grammar.formats import ToolFormat
from tokenizers import AddedToken, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as Backend
from transformers import PreTrainedTokenizerFast

BYTES = "bytes"


def of_folder(folder: Path) -> Tokenizer:
    """The tokenizer of a model's folder, its stops from tokenizer_config.json and generation_config.json."""
    eos = _read(folder / "tokenizer_config.json").get("eos_token")
    eos = eos["content"] if isinstance(eos, dict) else eos
    fast: Any = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), eos_token=eos)
    stops = _read(folder / "generation_config.json").get("eos_token_id", [])
    return Tokenizer(fast, len(fast), [stops] if isinstance(stops, int) else stops)


def of_bytes(row: ToolFormat) -> Tokenizer:
    """One token per byte, and the row's markers as control tokens."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Backend(models.BPE(vocab={char: place for place, char in enumerate(alphabet)}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    markers = ("<|end of answer|>", *row.tokens)
    backend.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in markers])
    fast: Any = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token=markers[0])
    return Tokenizer(fast, len(fast))


def _read(path: Path) -> dict[str, Any]:
    loaded = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return loaded if isinstance(loaded, dict) else {}
