"""The one random number of a row: Philox4x32-10 (Salmon et al., SC'11) with key `seed` and counter `step`."""

from __future__ import annotations

import torch

_LOW = 0xFFFFFFFF
_ROUND_A, _ROUND_B = 0xD2511F53, 0xCD9E8D57
_WEYL_A, _WEYL_B = 0x9E3779B9, 0xBB67AE85
_ROUNDS = 10


def _product(constant: int, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """High and low word of constant * x; by 16-bit halves, as int64 holds no 64-bit unsigned product."""
    low, high = x & 0xFFFF, x >> 16
    bottom = constant * low
    middle = constant * high + (bottom >> 16)
    return middle >> 16, ((middle & 0xFFFF) << 16) | (bottom & 0xFFFF)


def first_word(counter: tuple[torch.Tensor, ...], key: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """The first of the four output words; counter (4) and key (2) are 32-bit words held in int64."""
    a, b, c, d = counter
    key_a, key_b = key
    for _ in range(_ROUNDS):
        high_a, low_a = _product(_ROUND_A, a)
        high_b, low_b = _product(_ROUND_B, c)
        a, b, c, d = high_b ^ b ^ key_a, low_b, high_a ^ d ^ key_b, low_a
        key_a, key_b = (key_a + _WEYL_A) & _LOW, (key_b + _WEYL_B) & _LOW
    return a


def uniform(seed: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
    """float64 in (0, 1): (first output word >> 9) + 0.5 over 2**23, so that float32 holds it exactly.

    seed, step: int64 of one shape, taken as unsigned.
    """
    zero = torch.zeros_like(step)
    word = first_word((step & _LOW, (step >> 32) & _LOW, zero, zero), (seed & _LOW, (seed >> 32) & _LOW))
    return ((word >> 9).double() + 0.5) / 2**23
