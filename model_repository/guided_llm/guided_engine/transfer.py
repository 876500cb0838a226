"""Host arrays to the device, in one copy."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray


def on_device(device: torch.device, *arrays: NDArray[np.generic]) -> list[torch.Tensor]:
    """The arrays, all of one dtype, as tensors of the same shapes; they share memory. Not waited for on a GPU."""
    flat = torch.from_numpy(np.concatenate([a.reshape(-1) for a in arrays]))
    if device.type == "cuda":
        # a copy from pageable memory would block the host until the step before is done
        flat = flat.pin_memory()
    parts = torch.split(flat.to(device, non_blocking=True), [a.size for a in arrays])
    return [part.view(a.shape) for part, a in zip(parts, arrays, strict=True)]
