"""One forward pass of the unmodified transformers model over a ragged batch."""

from __future__ import annotations

from itertools import chain
from typing import Any

import torch

from guided_engine import attention
from guided_engine.attention import Step
from guided_engine.batch import Batch
from guided_engine.kv_cache import CacheShape, KVCache

_LAYER_TYPES = {"full_attention", "sliding_attention"}
_PROBE = 12
_TOLERANCE = 0.05


class Runner:
    """Owns the model and its cache.

    Raises ValueError at construction for a model whose attention this engine does not compute the same way: what the
    model says by itself about a short probe is compared with what it says through the cache.
    """

    def __init__(self, model: Any, shape: CacheShape, dtype: torch.dtype) -> None:
        attention.register()
        self.model = model
        config = model.config.get_text_config()
        strange = set(getattr(config, "layer_types", None) or ()) - _LAYER_TYPES
        if strange:
            raise ValueError(f"model has layers this engine does not run: {', '.join(sorted(strange))}")
        self.vocab_size = int(model.get_output_embeddings().weight.shape[0])
        probe = torch.arange(_PROBE, device=model.device) * 97 % self.vocab_size
        own = self._own_logits(probe)
        model.set_attn_implementation(attention.NAME)
        self.cache = KVCache(shape, dtype, model.device)
        self._compare(own, probe.tolist())

    def forward(self, batch: Batch) -> torch.Tensor:
        """Logits [drawing rows, vocab] on the model's device; keys and values of every chunk enter the cache."""
        ids = list(chain.from_iterable(batch.chunks))
        return self._run(ids, batch.past, [len(c) for c in batch.chunks], batch.sampling)

    @torch.inference_mode()
    def _run(
        self, ids: list[int], past: tuple[int, ...], lengths: list[int], sampling: tuple[int, ...]
    ) -> torch.Tensor:
        device = self.cache.device
        step = Step.build(self.cache, past, lengths)
        keep = step.last if len(sampling) == len(past) else step.last[list(sampling)]
        logits: torch.Tensor = self.model(
            input_ids=torch.tensor([ids], device=device),
            position_ids=step.positions[None],
            use_cache=False,
            guided_step=step,
            logits_to_keep=keep,
        ).logits[0]
        return logits

    @torch.inference_mode()
    def _own_logits(self, ids: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.model(input_ids=ids[None], use_cache=False, logits_to_keep=1).logits[0, -1]
        return logits.float()

    def _compare(self, own: torch.Tensor, probe: list[int]) -> None:
        half = len(probe) // 2
        self._run(probe[:half], (0,), [half], (0,))
        self._run(probe[half:-1], (half,), [len(probe) - half - 1], (0,))
        ours = self._run(probe[-1:], (len(probe) - 1,), [1], (0,))[0].float()
        scale = float(own.std()) or 1.0
        worst = float((ours - own).abs().max()) / scale
        if not worst < _TOLERANCE * (1 if self.cache.tensor.dtype == torch.float32 else 8):
            raise ValueError(f"model's attention is not one this engine computes: logits differ by {worst:.3f} sigma")
