"""The engine's settings: `parameters` of config.pbtxt, each overridden by `GUIDED_<NAME>` in the environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from guided_grammar.limits import Limits

from guided_engine.weights import DEFAULT_MODEL

_LIMIT = "limit_"
DTYPES = ("auto", "float32", "bfloat16", "float16")


@dataclass(frozen=True)
class EngineConfig:
    """Zero means "choose": see each field.

    model: the embedded default's name, a directory, or a hub id.
    device: torch's name of one; "auto" is the instance's (`for_instance`), else the first GPU, else the CPU.
    dtype: "auto" is float32 on the CPU and bfloat16 on a GPU.
    max_rows: choices decoded in one step. max_model_len: prompt and answer, 0 for the model's own, at most 4096.
    kv_tokens, kv_bytes: cap on cached tokens over all rows; past it the youngest row waits and is recomputed.
    step_tokens: tokens of one forward pass; a longer prompt is read over several.
    queue_size, queue_seconds: requests that may wait, and for how long.
    num_threads: torch's threads, 0 for its own choice.
    jump_forward: text the grammar forces enters in one step instead of token by token.
    grammar_cache_bytes: of compiled grammars. grammar_workers: processes that compile constraints.
    mask_seconds: CPU time that the masks of one answer may take beyond 5 ms a token; 0 is no bound.
    prefix_cache: a prompt's beginning that another row holds is copied instead of computed.
    batch_invariant: on the CPU, a seeded answer is the same to the bit in any company; steps of few rows take longer.
    tool_format, chat_template: read by the frontend from the model's config; the engine makes no use of them.
    limits: of constraints, each a setting of its own under the name `limit_<field>`.
    """

    model: str = DEFAULT_MODEL
    device: str = "auto"
    dtype: str = "auto"
    max_rows: int = 32
    max_model_len: int = 0
    kv_tokens: int = 0
    kv_bytes: int = 0
    step_tokens: int = 256
    queue_size: int = 256
    queue_seconds: float = 300.0
    num_threads: int = 0
    jump_forward: bool = True
    prefix_cache: bool = True
    batch_invariant: bool = False
    grammar_cache_bytes: int = 512 * 2**20
    grammar_workers: int = 1
    mask_seconds: float = 3.0
    tool_format: str = "auto"
    chat_template: str = ""
    limits: Limits = field(default_factory=Limits)

    @staticmethod
    def load(parameters: Mapping[str, str], environ: Mapping[str, str]) -> EngineConfig:
        """Raises ValueError naming an unknown parameter or a value that does not parse.

        Names in capitals are Triton's own (EXECUTION_ENV_PATH) and are left to it.
        """
        defaults = {f.name: f.default for f in fields(EngineConfig) if f.name != "limits"}
        limits = {f"{_LIMIT}{f.name}": f.default for f in fields(Limits)}
        known = defaults | limits
        unknown = sorted(name for name in parameters if name not in known and not name.isupper())
        if unknown:
            raise ValueError(f"config.pbtxt has an unknown parameter {unknown[0]!r}; known: {', '.join(sorted(known))}")
        texts = {name: environ.get(f"GUIDED_{name.upper()}") or parameters.get(name, "") for name in known}
        values = {name: _parse(name, text, known[name]) for name, text in texts.items() if text}
        chosen = Limits(**{name.removeprefix(_LIMIT): v for name, v in values.items() if name in limits})
        config = EngineConfig(**{name: v for name, v in values.items() if name in defaults}, limits=chosen)
        config._check()
        return config

    def for_instance(self, kind: str, device_id: str) -> EngineConfig:
        """Of an instance that Triton places: kind "GPU" is that GPU, "CPU" the CPU, any other leaves `device` as it is.

        A `device` that is set wins over the instance's.
        """
        device = {"GPU": f"cuda:{device_id}", "CPU": "cpu"}.get(kind)
        return self if device is None or self.device != "auto" else replace(self, device=device)

    def _check(self) -> None:
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, got {self.dtype!r}")
        for name in ("max_rows", "step_tokens", "queue_size", "grammar_workers"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if not self.mask_seconds >= 0:
            raise ValueError(f"mask_seconds must not be negative, got {self.mask_seconds}")
        for name, value in vars(self.limits).items():
            if value < 1:
                raise ValueError(f"{_LIMIT}{name} must be at least 1, got {value}")


def _parse(name: str, text: str, default: Any) -> Any:
    if isinstance(default, bool):
        if text.lower() not in ("true", "false", "1", "0"):
            raise ValueError(f"{name} must be true or false, got {text!r}")
        return text.lower() in ("true", "1")
    try:
        return type(default)(text)
    except ValueError:
        raise ValueError(f"{name} must be a number, got {text!r}") from None
