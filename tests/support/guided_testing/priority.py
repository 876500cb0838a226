"""Calls for a worker that tell how it runs them."""

from __future__ import annotations

import os
import time


def after(seconds: float) -> int:
    """The priority of this thread once it has run for so long."""
    time.sleep(seconds)
    return os.nice(0)
