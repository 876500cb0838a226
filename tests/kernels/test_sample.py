from __future__ import annotations

import pytest
import torch
from guided_kernels import cpu, gpu
from guided_kernels.params import SampleParams
from guided_kernels.rows import Rows
from guided_kernels.sample import sample


@pytest.mark.parametrize(("device", "path"), [("cpu", cpu), ("meta", gpu)])
def test_the_device_of_the_logits_picks_the_path(device: str, path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(path, "sample", lambda *arguments: seen.append(arguments))
    logits = torch.zeros(2, 8, device=device)
    rows, params = Rows.unconstrained(2, device), SampleParams.greedy(2, device)
    sample(logits, rows, params, 3, None, "none")
    assert seen == [(logits, rows, params, 3, None, "none")]
