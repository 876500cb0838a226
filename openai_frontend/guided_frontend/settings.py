"""How one frontend process is set up: flags, then `GUIDED_*` variables, then defaults."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from guided_grammar.limits import Limits

PREFIX = "GUIDED_"
_PER_MODEL = ("triton_model", "served_model_names", "model", "tool_format", "chat_template", "no_tools")


@dataclass(frozen=True)
class Settings:
    """Names of flags (`--triton-url`) and variables (`GUIDED_TRITON_URL`) are those of the fields; lists use commas.

    models: JSON file, a list of objects with any of triton_model, served_model_names, model, tool_format,
        chat_template and no_tools: one for each model behind this frontend; "" serves the one of these settings.
    model: folder with `tokenizer.json`; "" reads the parameter `model` of the Triton model's configuration.
    served_model_names: the first is canonical, the rest are aliases; empty means the name of the Triton model.
    tool_format: row of `guided_grammar.formats`; "" reads the Triton parameter; "auto" proposes one from the template.
    chat_template: a file, or "chatml_tools" (ours); "" uses the model's own, or ours for ChatML without tools.
    max_model_len: tokens of prompt plus answer, as the engine is configured; 0 reads the Triton parameter,
        and where that is 0 too, what the engine says of itself.
    no_tools: served names of models too small to be shown tools.
    first_token_timeout, token_timeout, request_timeout: seconds of silence before the first token, between tokens,
        and for a request as a whole.
    rate_limit: requests per minute of one API key, or of one address where no keys are asked for; 0 is no limit.
    keep_alive: seconds an idle connection is kept; longer than clients and load balancers keep theirs, so that none
        sends a request into a closing one. drain_timeout: seconds that running requests get when the process ends.
    api_keys: file with one SHA-256 hex digest of a key per line; "" accepts any key.
    unknown_fields: "refuse" or "ignore".
    trace_endpoint: URL of an OTLP/HTTP collector that gets a span of every generation; "" is none.
    check_answers: judge every constrained answer once more, with an independent validator, before its end is sent.
    """

    host: str = "127.0.0.1"
    port: int = 9000
    triton_url: str = "127.0.0.1:8001"
    triton_model: str = "guided_llm"
    served_model_names: tuple[str, ...] = ()
    models: str = ""
    model: str = ""
    tool_format: str = ""
    chat_template: str = ""
    max_model_len: int = 0
    no_tools: tuple[str, ...] = ()
    first_token_timeout: float = 120.0
    token_timeout: float = 60.0
    request_timeout: float = 600.0
    compile_timeout: float = 5.0
    compile_workers: int = 2
    max_body_bytes: int = 8_388_608
    max_concurrent: int = 256
    max_queued: int = 256
    queue_timeout: float = 30.0
    rate_limit: int = 0
    keep_alive: int = 620
    drain_timeout: int = 5
    api_keys: str = ""
    cors_origins: tuple[str, ...] = ()
    unknown_fields: str = "refuse"
    log_completions: bool = False
    trace_endpoint: str = ""
    check_answers: bool = False
    limits: Limits = field(default_factory=Limits)


def load(argv: Sequence[str], environ: Mapping[str, str]) -> Settings:
    """Settings of a process. Exits with usage on an unknown flag or a value of the wrong type."""
    parser = argparse.ArgumentParser(prog="python -m guided_frontend", description="OpenAI-compatible frontend")
    for name, default in _flat():
        flag, variable = f"--{name.replace('_', '-')}", PREFIX + name.upper()
        parser.add_argument(
            flag, dest=name, type=_reader(default), default=environ.get(variable) or default, help=f"env {variable}"
        )
    values = vars(parser.parse_args(argv))
    limits = Limits(**{f.name: values.pop(_limit(f.name)) for f in fields(Limits)})
    return Settings(**values, limits=limits)


def per_model(chosen: Settings) -> tuple[Settings, ...]:
    """The settings of each model. Raises OSError, or ValueError for a file that says something else or a name twice."""
    entries = json.loads(Path(chosen.models).read_text(encoding="utf-8")) if chosen.models else [{}]
    if not isinstance(entries, list) or not entries or not all(isinstance(e, dict) for e in entries):
        raise ValueError(f"{chosen.models} must hold a list of objects, one for each model")
    unknown = {key for entry in entries for key in entry if key not in _PER_MODEL}
    if unknown:
        raise ValueError(f"{chosen.models} has a key that is not a model's: {sorted(unknown)[0]!r}")
    found = tuple(replace(chosen, **{k: _value(k, v) for k, v in entry.items()}) for entry in entries)
    names = [name for one in found for name in one.served_model_names or (one.triton_model,)]
    if len(set(names)) < len(names):
        raise ValueError(f"two models are served under one name: {', '.join(sorted(names))}")
    return found


def _value(key: str, value: Any) -> Any:
    wanted = list if key in ("served_model_names", "no_tools") else str
    if not isinstance(value, wanted):
        raise ValueError(f"{key} must be a {wanted.__name__}, got {value!r}")
    return tuple(value) if wanted is list else value


def _flat() -> list[tuple[str, Any]]:
    own = [(f.name, getattr(Settings(), f.name)) for f in fields(Settings) if f.name != "limits"]
    return own + [(_limit(f.name), f.default) for f in fields(Limits)]


def _limit(name: str) -> str:
    return f"limit_{name}"


def _reader(default: Any) -> Any:
    if isinstance(default, bool):
        return _flag
    return _names if isinstance(default, tuple) else type(default)


def _flag(text: str) -> bool:
    if text.lower() not in {"1", "true", "yes", "0", "false", "no"}:
        raise argparse.ArgumentTypeError(f"expected true or false, got {text!r}")
    return text.lower() in {"1", "true", "yes"}


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
