"""One forward pass of the unmodified transformers model over a ragged batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from guided_grammar.batch import StepMasks

from guided_engine import attention
from guided_engine.attention import Step
from guided_engine.batch import Batch
from guided_engine.head import Head
from guided_engine.kv_cache import CacheShape, KVCache
from guided_engine.request import Choice

_LAYER_TYPES = {"full_attention", "sliding_attention"}
_PROBE = 12
_TOLERANCE = {torch.float32: 0.05, torch.bfloat16: 0.4, torch.float16: 0.4}


class Runner:
    """Owns the model and its cache.

    Raises ValueError at construction for a model that this engine does not compute the same way: what the model says
    by itself about a short probe is compared with what it says through the cache.
    batch_invariant: a row's logits do not depend on its company, to the bit (`EngineConfig`); on the CPU only.
    """

    def __init__(self, model: Any, shape: CacheShape, dtype: torch.dtype, batch_invariant: bool = False) -> None:
        # fewer rows than this to a thread, and the CPU's products take another way through their sums
        self._multiple = 4 * torch.get_num_threads() if batch_invariant and model.device.type == "cpu" else 1
        attention.register()
        self.model, self._decoder = model, model.get_decoder()
        strange = set(getattr(model.config.get_text_config(), "layer_types", None) or ()) - _LAYER_TYPES
        if strange:
            raise ValueError(f"model has layers this engine does not run: {', '.join(sorted(strange))}")
        linear = model.get_output_embeddings()
        self.vocab_size = int(linear.weight.shape[0])
        probe = torch.arange(_PROBE, device=model.device) * 97 % self.vocab_size
        own = self._own_logits(probe)
        model.set_attn_implementation(attention.NAME)
        self.cache = KVCache(shape, dtype, model.device, attention.KEY_BLOCK if self._multiple > 1 else 1)
        # models that cap or scale their logits keep their whole forward; the others end at the hidden states
        self.head: Head | None = Head(linear, self._multiple)
        if self._difference(own, probe.tolist()) > _TOLERANCE[dtype]:
            self.head = None
            worst = self._difference(own, probe.tolist())
            if not worst <= _TOLERANCE[dtype]:
                raise ValueError(f"attention is not one this engine computes: logits differ by {worst:.3f} sigma")

    def forward(self, batch: Batch) -> torch.Tensor:
        """What `logits` needs of the drawing rows, on the model's device and not waited for; every chunk's keys and
        values enter the cache."""
        return self._run(Step.build(self.cache, batch.past, batch.chunks, batch.sampling, self._multiple))

    @torch.inference_mode()
    def logits(self, state: torch.Tensor, masks: StepMasks | None, choices: Sequence[Choice]) -> torch.Tensor:
        """[drawing rows, vocab]; -inf where the masks forbid a token and nobody asked for its log-prob."""
        return state if self.head is None else self.head(state, masks, choices)

    @torch.inference_mode()
    def _run(self, step: Step) -> torch.Tensor:
        inputs: dict[str, Any] = {
            "input_ids": step.ids[None],
            "position_ids": step.positions[None],
            "use_cache": False,
            "guided_step": step,
        }
        if self.head is None:
            spare = -len(step.keep) % self._multiple
            keep = torch.cat((step.keep, step.keep[-1:].expand(spare)))
            logits: torch.Tensor = self.model(**inputs, logits_to_keep=keep).logits[0]
            return logits[: len(step.keep)]
        hidden: torch.Tensor = self._decoder(**inputs).last_hidden_state[0]
        return hidden[step.keep]

    @torch.inference_mode()
    def _own_logits(self, ids: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.model(input_ids=ids[None], use_cache=False, logits_to_keep=1).logits[0, -1]
        return logits.float()

    def _difference(self, own: torch.Tensor, probe: list[int]) -> float:
        """Largest distance between the model's own logits and those of the probe read in three steps, in sigmas."""
        half, end = len(probe) // 2, len(probe) - 1
        for start, stop in ((0, half), (half, end), (end, end + 1)):
            state = self._run(Step.build(self.cache, (start,), (probe[start:stop],), (0,)))
        ours = self.logits(state, None, ())[0].float()
        return float((ours - own).abs().max()) / (float(own.std()) or 1.0)
