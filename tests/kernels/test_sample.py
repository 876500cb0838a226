from __future__ import annotations

import pytest
import torch
from guided_kernels import cpu, gpu
from guided_kernels.params import SampleParams
from guided_kernels.plan import Plan
from guided_kernels.rows import Rows
from guided_kernels.sample import sample


@pytest.mark.parametrize(("device", "path", "more"), [("cpu", cpu, ()), ("meta", gpu, (Plan(listed=False),))])
def test_the_device_of_the_logits_picks_the_path(
    device: str, path: object, more: tuple[Plan, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    monkeypatch.setattr(path, "sample", lambda *arguments: seen.append(arguments))
    logits = torch.zeros(2, 8, device=device)
    rows, params = Rows.unconstrained(2, device), SampleParams.greedy(2, device)
    sample(logits, rows, params, 3, None, "none", Plan(listed=False))
    assert seen == [(logits, rows, params, 3, None, "none", *more)]
