"""A step's draw: the rows' settings as tensors, for `guided_kernels.sample`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from guided_grammar.batch import StepMasks
from guided_kernels.edits import Edits, Penalties, Seen, penalty_edits
from guided_kernels.params import SampleParams
from guided_kernels.rows import MAX_IDS, Rows
from guided_kernels.sample import sample
from guided_kernels.sampled import LogprobsOf, Sampled

from guided_engine.protocol import TokenLogprob
from guided_engine.request import Choice
from guided_engine.transfer import on_device


@dataclass(frozen=True)
class Drawn:
    """One entry per drawing row, on the host. status: as `Sampled.status`, 1 too for a row without a legal token."""

    tokens: list[int]
    status: list[int]
    logprobs: list[TokenLogprob | None]


def draw(logits: torch.Tensor, masks: StepMasks | None, choices: Sequence[Choice]) -> Drawn:
    """One token per row of `logits`; masks None: no row is constrained."""
    if not choices:
        return Drawn([], [], [])
    device = logits.device
    rows = Rows.unconstrained(len(choices), device) if masks is None else _rows(masks, device)
    asked = [c.request.sampling.logprobs for c in choices]
    top = max((k for k in asked if k is not None), default=0)
    wanted = any(k is not None for k in asked)
    sampled = sample(logits, rows, _params(choices, device), top, _edits(logits, choices), "raw" if wanted else "none")
    # one copy to the host; a double holds every id exactly
    table = torch.stack((sampled.ids.double(), sampled.status.double(), sampled.logprobs.double())).tolist()
    tokens, status = ([int(x) for x in column] for column in table[:2])
    for row in () if masks is None else masks.failed:
        status[row] = 1
    return Drawn(tokens, status, _logprobs(tokens, table[2], sampled, choices) if wanted else [None] * len(choices))


def prepare(vocab_size: int, dtype: torch.dtype, device: torch.device) -> None:
    """Compile the sampler for logits of this kind: a minute on a machine that never did, milliseconds after that."""
    kinds = np.arange(4, dtype=np.int32)
    words, ids = np.full((1, -(-vocab_size // 32)), -1, np.int32), np.zeros((1, MAX_IDS), np.int32)
    ids[0, 1] = 1
    masks = StepMasks(kinds, np.zeros(4, np.int32), words, ids, np.array([2], np.int32))
    params = SampleParams.greedy(4, device)
    hot = replace(params, temperature=torch.ones(4, device=device), top_p=torch.full((4,), 0.9, device=device))
    laws: tuple[tuple[SampleParams, LogprobsOf], ...] = ((params, "none"), (hot, "raw"))
    for law, logprobs in laws:
        sample(torch.zeros(4, vocab_size, dtype=dtype, device=device), _rows(masks, device), law, 1, None, logprobs)


def _rows(masks: StepMasks, device: torch.device) -> Rows:
    return Rows(*on_device(device, masks.kind, masks.index, masks.bits, masks.ids, masks.num_ids))


def _params(choices: Sequence[Choice], device: torch.device) -> SampleParams:
    sampling = [c.request.sampling for c in choices]
    floats = np.array([[s.temperature, s.top_p, s.min_p] for s in sampling], np.float32).T
    integers = np.array(
        [[s.top_k, c.seed, c.num_generated] for s, c in zip(sampling, choices, strict=True)], np.int64
    ).T
    temperature, top_p, min_p = on_device(device, *floats)
    top_k, seed, step = on_device(device, *integers)
    return SampleParams(temperature, top_k.int(), top_p, min_p, seed, step)


def _edits(logits: torch.Tensor, choices: Sequence[Choice]) -> Edits | None:
    device = logits.device
    bias = [(row, t, v) for row, c in enumerate(choices) for t, v in c.request.sampling.logit_bias.items()]
    seen = [(row, t, c.output_counts[t]) for row, c in enumerate(choices) if _is_penalised(c) for t in set(c.tokens)]
    edits = None
    if bias:
        row, token, value = (torch.tensor(part, device=device) for part in zip(*bias, strict=True))
        edits = Edits(row, token, value.float())
    if seen:
        row, token, count = (torch.tensor(part, device=device) for part in zip(*seen, strict=True))
        penalised = penalty_edits(logits, Seen(row, token, count.int()), _penalties(choices, device))
        edits = penalised if edits is None else edits.and_also(penalised)
    return edits


def _is_penalised(choice: Choice) -> bool:
    s = choice.request.sampling
    return s.repetition_penalty != 1.0 or s.frequency_penalty != 0.0 or s.presence_penalty != 0.0


def _penalties(choices: Sequence[Choice], device: torch.device) -> Penalties:
    sampling = [c.request.sampling for c in choices]
    table = np.array([[s.repetition_penalty, s.frequency_penalty, s.presence_penalty] for s in sampling], np.float32)
    return Penalties(*torch.from_numpy(table.T.copy()).to(device))


def _logprobs(
    ids: Sequence[int], values: Sequence[float], sampled: Sampled, choices: Sequence[Choice]
) -> list[TokenLogprob | None]:
    top_ids, top_values = sampled.top_ids.tolist(), sampled.top_logprobs.tolist()
    out: list[TokenLogprob | None] = []
    for row, choice in enumerate(choices):
        count = choice.request.sampling.logprobs
        if count is None:
            out.append(None)
            continue
        pieces = choice.request.pieces
        top = tuple(
            TokenLogprob(i, v, tuple(pieces[i]))
            for i, v in zip(top_ids[row][:count], top_values[row][:count], strict=True)
            if i >= 0
        )
        out.append(TokenLogprob(ids[row], values[row], tuple(pieces[ids[row]]), top))
    return out
