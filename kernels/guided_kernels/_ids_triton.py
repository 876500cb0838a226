"""IDS and FORCED rows in one launch: at most MAX_IDS logits are gathered, and everything happens in registers."""

# A jit body is typed by Triton, at compile time.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators
from __future__ import annotations

import triton
import triton.language as tl

from guided_kernels._triton_math import (
    BIG,
    COLDEST,
    K_FORCED,
    K_IDS,
    LAW_CONSTRAINED,
    LAW_RAW,
    LOG2E,
    LOWEST,
    NEG_INF,
    S_NAN,
    S_NOTHING,
    S_OK,
    draw_scale,
    log_normaliser,
    pick,
    uniform,
)


@triton.jit
def shortest_run(x, weight, best, scale, wanted, share):
    """Which of x to keep: the shortest run of the sorted list with `wanted` tokens and `share` of weight.

    Equals stay in the order of the list. x: -inf where absent. Bisection, as a sort of 1024 pairs takes ten times the
    code and its 55 rounds meet at a barrier each.
    """
    # What lies below weighs nothing.
    low = tl.maximum(best - 150.0 / scale, LOWEST)
    reach = LOG2E / scale
    num_low = tl.full((), BIG, tl.int32)
    ceiling = tl.full((), float("inf"), tl.float32)
    num_high = tl.full((), 0, tl.int32)
    mass_high = tl.full((), 0.0, tl.float32)
    middle = best
    while (low < middle) & (middle < ceiling) & (num_low - num_high > 1) & ((share > 0.0) | (num_low > wanted)):
        count = tl.sum((x >= middle).to(tl.int32), 0)
        mass = tl.sum(tl.where(x >= middle, weight, 0.0), 0)
        if (count >= wanted) & (mass >= share):
            low = middle
            num_low = count
        else:
            ceiling = middle
            num_high = count
            mass_high = mass
        if num_low == BIG:
            middle = best - reach
            reach = reach * 2.0
        else:
            middle = 0.5 * low + 0.5 * tl.minimum(ceiling, best)
    # From `low` up to `ceiling` lies one token, or equals, or all wanted.
    among = (x >= low) & (x < ceiling)
    heavy = tl.where(among, weight, 0.0)
    rank = tl.cumsum(among.to(tl.int32), 0) - 1
    stays = among & ((rank < wanted - num_high) | (tl.cumsum(heavy, 0) - heavy < share - mass_high))
    return (x >= ceiling) | stays


@triton.jit
def draw_ids(logits_ptr, edited_ptr, kind_ptr, index_ptr, ids_ptr, num_ids_ptr, temperature_ptr, top_k_ptr, top_p_ptr,
             min_p_ptr, seed_ptr, step_ptr, law_max_ptr, law_sum_ptr, id_ptr, logprob_ptr, status_ptr, top_id_ptr,
             top_logprob_ptr, vocab, logits_stride, edited_stride, ids_stride, num_tiles, num_top,
             LAW: tl.constexpr, FILTERS: tl.constexpr, K: tl.constexpr, TILES: tl.constexpr):  # fmt: skip
    """Token, status and log-prob of a row; of the constrained law also the num_top likeliest."""
    row = tl.program_id(0)
    kind = tl.load(kind_ptr + row)
    if (kind == K_IDS) | (kind == K_FORCED):
        index = tl.load(index_ptr + row)
        k = tl.arange(0, K)
        listed = kind == K_IDS
        entry = tl.where(listed, index, 0)
        # Bounds, not conditions, single out the list: the interpreter takes no mask made of a scalar and a vector.
        num_ids = tl.load(num_ids_ptr + entry, mask=listed, other=0)
        ids = tl.load(ids_ptr + entry.to(tl.int64) * ids_stride + k, mask=k < num_ids, other=0)
        ids = tl.where(listed, ids, index)
        inside = (k < tl.where(listed, num_ids, 1)) & (ids >= 0) & (ids < vocab)
        read = inside & (k < num_ids)
        x = tl.load(edited_ptr + row.to(tl.int64) * edited_stride + ids, mask=read, other=float("-inf")).to(tl.float32)
        # A forced token is drawn whatever its logit.
        x = tl.where(inside & (k >= num_ids), 0.0, x)
        best = tl.max(x, 0)
        base = tl.where(best == NEG_INF, 0.0, best)
        temperature = tl.load(temperature_ptr + row)
        scale = draw_scale(temperature)
        weight = tl.exp2((x - base) * scale)
        whole = tl.sum(weight, 0)
        token = tl.full((), -1, tl.int32)
        status = tl.full((), S_OK, tl.int32)
        if whole != whole:
            status = tl.full((), S_NAN, tl.int32)
        else:
            if best == NEG_INF:
                status = tl.full((), S_NOTHING, tl.int32)
            else:
                if temperature >= COLDEST:
                    if FILTERS:
                        least = tl.load(min_p_ptr + row)
                        least = tl.where(least > 0.0, tl.minimum(least, 1.0), 0.0)
                        top_k = tl.load(top_k_ptr + row)
                        top_p = tl.load(top_p_ptr + row)
                        y = tl.where(weight >= least, x, NEG_INF)
                        weight = tl.where(weight >= least, weight, 0.0)
                        if top_k > 0:
                            kept = shortest_run(y, weight, best, scale, top_k, 0.0)
                            y = tl.where(kept, y, NEG_INF)
                            weight = tl.where(kept, weight, 0.0)
                        if top_p < 1.0:
                            share = tl.maximum(top_p, 0.0) * tl.sum(weight, 0)
                            weight = tl.where(shortest_run(y, weight, best, scale, 1, share), weight, 0.0)
                    target = uniform(seed_ptr, step_ptr, row) * tl.sum(weight, 0)
                    chosen, _ = pick(weight, k, target, K)
                else:
                    chosen = tl.min(tl.where(x == best, k, K), 0)
                token = tl.max(tl.where(k == chosen, ids, -1), 0)
        tl.store(id_ptr + row, token.to(tl.int64))
        tl.store(status_ptr + row, status.to(tl.int8))
        logprob = tl.where(status == S_NOTHING, NEG_INF, float("nan"))
        if LAW == LAW_RAW:  # noqa: SIM102 - the one is decided when compiling, the other when running
            if status == S_OK:
                chosen_logit = tl.load(logits_ptr + row.to(tl.int64) * logits_stride + token).to(tl.float32)
                logprob = chosen_logit - log_normaliser(law_max_ptr, law_sum_ptr, row, num_tiles, TILES)
        if LAW == LAW_CONSTRAINED:  # noqa: SIM102 - as above
            if status == S_OK:
                offset = base + tl.log(tl.sum(tl.exp2((x - base) * LOG2E), 0))
                logprob = tl.max(tl.where(ids == token, x, NEG_INF), 0) - offset
                for rank in range(num_top):
                    high = tl.max(x, 0)
                    at = tl.min(tl.where(x == high, k, K), 0)
                    some = high > NEG_INF
                    found = tl.max(tl.where(k == at, ids, -1), 0)
                    tl.store(top_id_ptr + row.to(tl.int64) * num_top + rank, tl.where(some, found, -1).to(tl.int64))
                    tl.store(
                        top_logprob_ptr + row.to(tl.int64) * num_top + rank, tl.where(some, high - offset, NEG_INF)
                    )
                    x = tl.where(k == at, NEG_INF, x)
        tl.store(logprob_ptr + row, logprob)
