"""How the CPU path is compiled, and the scalar functions that LLVM vectorises in its loops."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba import carray, types
from numba.core import cgutils
from numba.extending import intrinsic, overload

F = TypeVar("F", bound=Callable[..., Any])

NEG_INF = np.float32(-np.inf)
LOG2E = np.float32(1.4426950408889634)
INF_BITS, NEG_INF_BITS = np.int32(0x7F800000), np.uint32(0xFF800000)

# Sums may be reordered, or no loop over them vectorises; NaN, infinities and the sign of zero keep their meaning.
_OPTIONS = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract"}}


def jit(function: F) -> F:
    """Compiled when first called, GIL released."""
    return cast(F, numba.njit(**_OPTIONS)(function))


def cached_jit(function: F) -> F:
    """`jit`, kept in numba's cache directory (NUMBA_CACHE_DIR) where one can be written."""
    try:
        return cast(F, numba.njit(cache=True, **_OPTIONS)(function))
    except RuntimeError:
        return jit(function)


def source_digest() -> int:
    """A number that changes with any file that the compiled step is made of."""
    parts = ("_numba", "_cpu_*", "params", "rows", "sampled")
    files = sorted(file for part in parts for file in Path(__file__).parent.glob(f"{part}.py"))
    return int.from_bytes(sha256(b"".join(f.read_bytes() for f in files)).digest()[:7], "little")


def _pointer_type(typing_context: Any, address: Any) -> Any:
    """An address as a pointer."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.voidptr(types.int64), generate


_pointer: Callable[[int], Any] = intrinsic(_pointer_type)


def _lowest_bit_type(typing_context: Any, word: Any) -> Any:
    """The place of the lowest bit that is set; there must be one."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.zext(builder.cttz(arguments[0], cgutils.true_bit), context.get_value_type(types.int64))

    return types.int64(types.int32), generate


lowest_bit: Callable[[Any], int] = intrinsic(_lowest_bit_type)


@jit
def vector(address: int, length: int, dtype: Any) -> Any:
    """A tensor's contiguous memory, which must outlive it. (Twenty calls of Tensor.numpy would cost 20 us a step.)"""
    return carray(_pointer(address), (length,), dtype)


@jit
def matrix(address: int, num_rows: int, width: int, dtype: Any) -> Any:
    return carray(_pointer(address), (num_rows, width), dtype)


def as_float(stored: Any) -> Any:
    """The float32 value of one stored logit: float32, bfloat16 kept as uint16, or float16 kept as int16."""
    raise NotImplementedError


def _as_float(stored: Any) -> Any:
    if stored == types.float32:
        return _same
    return _bfloat_as_float if stored == types.uint16 else _half_as_float


def _same(stored: Any) -> Any:
    return stored


def _bfloat_as_float(stored: Any) -> Any:
    return np.uint32(np.uint32(stored) << np.uint32(16)).view(np.float32)


def _half_as_float(stored: Any) -> Any:
    bits = np.uint32(stored)
    scaled = np.uint32((bits & np.uint32(0x7FFF)) << np.uint32(13)).view(np.float32) * np.float32(2.0**112)
    special = np.uint32(0x7F800000) if (bits & np.uint32(0x7C00)) == np.uint32(0x7C00) else np.uint32(0)
    sign = (bits & np.uint32(0x8000)) << np.uint32(16)
    return np.uint32(np.float32(scaled).view(np.uint32) | special | sign).view(np.float32)


overload(as_float)(_as_float)


@jit
def exp2(t: Any) -> Any:
    """2**t for t <= 0, relative error below 1e-7; exactly 1 at 0, and 0 below -126."""
    bounded = max(t, np.float32(-126))
    whole = np.floor(bounded + np.float32(0.5))
    f = bounded - whole
    power = np.float32(1.5353362e-4)
    power = power * f + np.float32(1.339887440266574e-3)
    power = power * f + np.float32(9.618437357674640e-3)
    power = power * f + np.float32(5.550332471162809e-2)
    power = power * f + np.float32(2.402264791363012e-1)
    power = power * f + np.float32(6.931472028550421e-1)
    power = power * f + np.float32(1)
    scale = np.int32((np.int32(whole) + np.int32(127)) << np.int32(23)).view(np.float32)
    return power * scale if t >= np.float32(-126) else np.float32(0)


@jit
def uniform(seed: Any, step: Any) -> Any:
    """`philox.uniform` of one row."""
    low = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    a, b = np.uint64(step) & low, np.uint64(step) >> half
    c, d = np.uint64(0), np.uint64(0)
    key_a, key_b = np.uint64(seed) & low, np.uint64(seed) >> half
    for _ in range(10):
        first, second = np.uint64(0xD2511F53) * a, np.uint64(0xCD9E8D57) * c
        a, b, c, d = (second >> half) ^ b ^ key_a, second & low, (first >> half) ^ d ^ key_b, first & low
        key_a, key_b = (key_a + np.uint64(0x9E3779B9)) & low, (key_b + np.uint64(0xBB67AE85)) & low
    return (float(a >> np.uint64(9)) + 0.5) / 2.0**23
