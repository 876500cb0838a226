"""The largest allowed logit, straight from memory: vector code that numba makes of no loop.

It vectorises neither a float maximum where NaN has a meaning nor one under a mask, unless the row is stored first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from guided_kernels._numba import INF_BITS, jit

_WORD = 32
_INT, _FLOAT = ir.IntType(32), ir.FloatType()
_INTS, _FLOATS = ir.VectorType(_INT, _WORD), ir.VectorType(_FLOAT, _WORD)


def _lanes(values: list[int]) -> Any:
    return ir.Constant(ir.VectorType(_INT, len(values)), [ir.Constant(_INT, value) for value in values])


_BITS = _lanes([1 << lane for lane in range(_WORD)])
_ZEROS = _lanes([0] * _WORD)
_MAGNITUDE = _lanes([0x7FFFFFFF] * _WORD)
_LOWEST = ir.Constant(_FLOATS, [ir.Constant(_FLOAT, float("-inf"))] * _WORD)


def _splat(builder: Any, word: Any) -> Any:
    nothing = ir.Constant(_INTS, ir.Undefined)
    return builder.shuffle_vector(builder.insert_element(nothing, word, ir.Constant(_INT, 0)), nothing, _ZEROS)


def _stored(builder: Any, data: Any, first: Any, bfloat: bool) -> Any:
    """32 logits from position `first` on, as float32."""
    kind = ir.VectorType(ir.IntType(16), _WORD) if bfloat else _FLOATS
    # rows start anywhere: the alignment of a vector would be a promise that nobody made
    values = builder.load(builder.bitcast(builder.gep(data, [first]), kind.as_pointer()), align=2 if bfloat else 4)
    if not bfloat:
        return values
    return builder.bitcast(builder.shl(builder.zext(values, _INTS), _lanes([16] * _WORD)), _FLOATS)


def _larger(builder: Any, a: Any, b: Any) -> Any:
    is_float = a.type.element == _FLOAT
    return builder.select(builder.fcmp_ordered(">", a, b) if is_float else builder.icmp_signed(">", a, b), a, b)


def _folded(builder: Any, lanes: Any) -> Any:
    """The largest of the lanes."""
    for half in (16, 8, 4, 2, 1):
        low, high = _lanes(list(range(half))), _lanes(list(range(half, 2 * half)))
        nothing = ir.Constant(lanes.type, ir.Undefined)
        lanes = _larger(
            builder, builder.shuffle_vector(lanes, nothing, low), builder.shuffle_vector(lanes, nothing, high)
        )
    return builder.extract_element(lanes, ir.Constant(_INT, 0))


def _peak_type(typing_context: Any, x: Any, words: Any) -> Any:
    """The largest logit that is a number, and the bits of the largest magnitude."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        logits, mask = (
            context.make_array(t)(context, builder, a) for t, a in zip(signature.args, arguments, strict=True)
        )
        best, most = cgutils.alloca_once_value(builder, _LOWEST), cgutils.alloca_once_value(builder, _ZEROS)
        with cgutils.for_range(builder, mask.nitems) as loop:
            word = builder.load(builder.gep(mask.data, [loop.index]))
            with builder.if_then(builder.icmp_unsigned("!=", word, ir.Constant(_INT, 0))):
                first = builder.mul(loop.index, ir.Constant(loop.index.type, _WORD))
                values = _stored(builder, logits.data, first, signature.args[0].dtype == types.uint16)
                allowed = builder.icmp_unsigned("!=", builder.and_(_splat(builder, word), _BITS), _ZEROS)
                values = builder.select(allowed, values, _LOWEST)
                size = builder.and_(builder.bitcast(values, _INTS), _MAGNITUDE)
                builder.store(_larger(builder, values, builder.load(best)), best)
                builder.store(_larger(builder, size, builder.load(most)), most)
        both = [_folded(builder, builder.load(best)), _folded(builder, builder.load(most))]
        return context.make_tuple(builder, signature.return_type, both)

    return types.Tuple((types.float32, types.int32))(x, words), generate


_peak: Callable[[Any, Any], tuple[Any, Any]] = intrinsic(_peak_type)


@jit
def peak(x: Any, words: Any) -> tuple[Any, bool]:
    """The largest allowed logit, and whether any allowed one is NaN or +inf (then the first means nothing).

    x: float32[32 * n], or uint16[32 * n] of bfloat16 bits; words: int32[n]. Logits of a word that is 0 aren't read.
    """
    best, most = _peak(x, words)
    return best, most > INF_BITS or best == np.float32(np.inf)
