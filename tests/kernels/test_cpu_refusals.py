"""What the CPU path refuses, and what it loads."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from guided_kernels import cpu
from guided_kernels.edits import Edits
from guided_kernels.rows import Rows
from guided_testing.kernel_cases import bits_rows, ids_rows, params


def test_no_rows_no_tokens() -> None:
    assert cpu.sample(torch.zeros(0, 8), Rows.unconstrained(0), params(0), 2).top_ids.shape == (0, 2)


def bad_rows(**changed: torch.Tensor) -> Rows:
    return Rows(**{**vars(bits_rows(torch.ones(1, 8, dtype=torch.bool))), **changed})


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (bad_rows(index=torch.tensor([1], dtype=torch.int32)), r"rows.index\[0\] must be a row of the 1 bits, got 1"),
        (bad_rows(index=torch.tensor([-1], dtype=torch.int32)), "got -1"),
        (bad_rows(kind=torch.tensor([2], dtype=torch.int32)), r"a row of the 0 ids, got 0"),
        (Rows(*(torch.full_like(c, 1025) if n == "num_ids" else c for n, c in vars(ids_rows([[1]])).items())), r"rows.num_ids\[0\] must lie from 0 to 1024, got 1025"),
    ],
)  # fmt: skip
def test_a_table_that_points_outside_is_refused(rows: Rows, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        cpu.sample(torch.zeros(1, 8), rows, params(1))


@pytest.mark.parametrize(("row", "token"), [(1, 0), (-1, 0), (0, 8), (0, -1)])
def test_an_edit_outside_the_logits_is_refused(row: int, token: int) -> None:
    edits = Edits(torch.tensor([row]), torch.tensor([token]), torch.ones(1))
    with pytest.raises(ValueError, match=rf"edit 0 must lie in logits \[1, 8\], got \[{row}, {token}\]"):
        cpu.sample(torch.zeros(1, 8), Rows.unconstrained(1), params(1), 0, edits)


def test_the_cpu_path_loads_neither_triton_nor_its_compiler() -> None:
    code = "import sys, guided_kernels.sample; sys.exit('triton' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
