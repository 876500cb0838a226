"""These run the Triton kernels in Triton's interpreter, which must be chosen before the first import of a kernel: so
`test_interpreter.py` runs this folder in a process of its own, and nothing is collected here otherwise."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pytest

collect_ignore_glob = [] if os.environ.get("TRITON_INTERPRET") == "1" else ["test_*.py"]


@pytest.fixture(autouse=True)
def arithmetic_of_a_device() -> Iterator[None]:
    """Overflow and NaN are values there, not warnings of numpy."""
    with np.errstate(all="ignore"):
        yield
