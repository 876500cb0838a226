"""The law that every kernel is tested against: `sample` in float64 torch, dense and slow."""

from __future__ import annotations

import torch

from guided_kernels import philox
from guided_kernels.edits import Edits
from guided_kernels.params import GREEDY_BELOW, HOTTEST, SampleParams
from guided_kernels.rows import BITS, FORCED, IDS, UNCONSTRAINED, Rows
from guided_kernels.sampled import NOT_A_NUMBER, NOTHING_ALLOWED, OK, LogprobsOf, Sampled


def sample(
    logits: torch.Tensor,
    rows: Rows,
    params: SampleParams,
    top_logprobs: int = 0,
    edits: Edits | None = None,
    logprobs: LogprobsOf = "raw",
) -> Sampled:
    """As `guided_kernels.sample.sample`; on any device."""
    allowed = allowed_tokens(rows, logits.shape[1])
    edited = edited_logits(logits, edits)
    masked = edited.masked_fill(~allowed, -torch.inf)
    status = _status(masked, allowed, rows.kind == FORCED)
    usable = masked.masked_fill((status == NOT_A_NUMBER)[:, None], 0.0)
    drawn = _draw(probabilities(usable, params), philox.uniform(params.seed, params.step))
    ids = torch.where(params.temperature >= GREEDY_BELOW, drawn, usable.argmax(-1))
    ids = torch.where(rows.kind == FORCED, rows.index.long(), ids)
    law = masked if logprobs == "constrained" else logits.double()
    table = torch.log_softmax(law, -1)
    if logprobs == "constrained":
        forced = (rows.kind == FORCED)[:, None]
        table = torch.where(forced, torch.where(allowed, 0.0, -torch.inf), table)
    if logprobs == "none":
        table = torch.full_like(table, torch.nan)
    chosen = table.gather(1, ids.clamp(0, logits.shape[1] - 1)[:, None])[:, 0]
    chosen = chosen.masked_fill(status == NOTHING_ALLOWED, -torch.inf).masked_fill(status == NOT_A_NUMBER, torch.nan)
    top_ids, tops = _top(table, status, top_logprobs)
    return Sampled(ids.masked_fill(status != OK, -1), chosen.float(), status, top_ids, tops)


def allowed_tokens(rows: Rows, vocab: int) -> torch.Tensor:
    """bool[rows, vocab]: what the row table allows."""
    allowed = torch.zeros(len(rows.kind), vocab, dtype=torch.bool, device=rows.kind.device)
    for row, (kind, index) in enumerate(zip(rows.kind.tolist(), rows.index.tolist(), strict=True)):
        if kind == UNCONSTRAINED:
            allowed[row] = True
        elif kind == BITS:
            shifts = torch.arange(32, dtype=torch.int32, device=allowed.device)
            bits = ((rows.bits[index][:, None] >> shifts) & 1).flatten().bool()[:vocab]
            allowed[row, : len(bits)] = bits
        elif kind == IDS:
            ids = rows.ids[index, : int(rows.num_ids[index])].long()
            allowed[row, ids[(ids >= 0) & (ids < vocab)]] = True
        elif kind == FORCED and 0 <= index < vocab:
            allowed[row, index] = True
    return allowed


def edited_logits(logits: torch.Tensor, edits: Edits | None) -> torch.Tensor:
    """float64[rows, vocab]; the edits of one logit are summed, then added to it in float32 as the kernels do."""
    if edits is None:
        return logits.double()
    delta = torch.zeros(logits.shape, dtype=torch.float64, device=logits.device)
    delta.index_put_((edits.row, edits.token), edits.value.double(), accumulate=True)
    return (logits.float() + delta.float()).double()


def probabilities(masked: torch.Tensor, params: SampleParams) -> torch.Tensor:
    """float64[rows, vocab]: the law of the draw: temperature, then top-k and min-p, then top-p over what they left.

    masked: float64[rows, vocab], -inf where not allowed, otherwise finite.
    """
    temperature = params.temperature.double().clamp(max=HOTTEST)
    temperature = torch.where(temperature >= GREEDY_BELOW, temperature, 1.0)[:, None]
    best = masked.max(-1, keepdim=True).values
    weight = torch.exp((masked - best.masked_fill(best.isinf(), 0.0)) / temperature)
    order = masked.sort(dim=-1, descending=True, stable=True).indices
    weight = weight.gather(1, order)
    rank = torch.arange(masked.shape[1], device=masked.device)
    top_k = params.top_k[:, None]
    keep = ((rank < top_k) | (top_k <= 0)) & (weight >= params.min_p.double().nan_to_num(0).clamp(0, 1)[:, None])
    weight = weight * keep
    before = weight.cumsum(-1) - weight
    top_p = params.top_p.double()[:, None]
    keep = (before < top_p * weight.sum(-1, keepdim=True)) | ~(top_p < 1) | (rank == 0)
    weight = torch.zeros_like(weight).scatter(1, order, weight * keep)
    return weight / weight.sum(-1, keepdim=True)


def _draw(probability: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    """The first id whose cumulated probability exceeds the uniform; the last possible one if rounding leaves none."""
    possible = probability > 0
    hit = possible & (probability.cumsum(-1) > uniform[:, None])
    last = probability.shape[1] - 1 - possible.flip(-1).int().argmax(-1)
    return torch.where(hit.any(-1), hit.int().argmax(-1), last)


def _status(masked: torch.Tensor, allowed: torch.Tensor, forced: torch.Tensor) -> torch.Tensor:
    bad = (masked.isnan() | masked.isposinf()).any(-1) & ~forced
    nothing = torch.where(forced, ~allowed.any(-1), masked.isneginf().all(-1))
    return (bad * NOT_A_NUMBER + nothing * NOTHING_ALLOWED).to(torch.int8)


def _top(table: torch.Tensor, status: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    best = table.sort(dim=-1, descending=True, stable=True)
    values, ids = best.values[:, :count].float(), best.indices[:, :count]
    absent = ~(values > -torch.inf) | (status != OK)[:, None]
    return ids.masked_fill(absent, -1), values.masked_fill(absent, -torch.inf)
