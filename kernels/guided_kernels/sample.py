"""The step's last stage: logits and a row table in, token ids out."""

from __future__ import annotations

import torch

from guided_kernels import cpu
from guided_kernels.check import check
from guided_kernels.edits import Edits
from guided_kernels.params import SampleParams
from guided_kernels.plan import ANYTHING, Plan
from guided_kernels.rows import Rows
from guided_kernels.sampled import LogprobsOf, Sampled


def sample(
    logits: torch.Tensor,
    rows: Rows,
    params: SampleParams,
    top_logprobs: int = 0,
    edits: Edits | None = None,
    logprobs: LogprobsOf = "raw",
    plan: Plan = ANYTHING,
) -> Sampled:
    """Draw one token per row from softmax(logits + edits, over what the row allows).

    id ~ top_p(min_p(top_k(softmax((logits + edits)[allowed] / temperature)))), by inverse CDF in the order of ids with
    one uniform per row; greedy takes the lowest id among equals. A token that is not allowed is never drawn, whatever
    the parameters.

    logits: [rows, vocab] of float32, bfloat16 or float16, any strides; never written to.
    top_logprobs: k, from 0 to MAX_TOP_LOGPROBS (and to vocab).
    logprobs: which distribution is reported (see `Sampled`); "raw" costs a read of the whole row, so pass "none" when
    nobody asked.
    plan: what the caller knows about the rows; on a GPU it saves launches.
    Raises ValueError for a wrong shape, dtype or device; faults of values end in `Sampled.status`.
    """
    check(logits, rows, params, top_logprobs, edits)
    if logits.is_cpu:
        return cpu.sample(logits, rows, params, top_logprobs, edits, logprobs)
    from guided_kernels import gpu  # imports triton, which a server on a CPU need not load

    # the triton compiler launches on the current device, wherever the tensors are
    with torch.cuda.device(logits.get_device()):
        return gpu.sample(logits, rows, params, top_logprobs, edits, logprobs, plan)
