"""The intrinsics that come with the compiler: dot products of four elements in each of sixteen lanes.

What they compute is what x86 (vpdpbusd, AVX512-VNNI) and Arm (sdot) do in one instruction.
"""

from __future__ import annotations

from .. import te
from .intrinsics import TensorIntrin, accumulating
from .schedule import Schedule

LANES = 16
STEPS = 4


def dot_i8i8i32(name: str) -> TensorIntrin:
    """C[i] += A[i, k] * B[i, k] of int8 in int32."""
    return _dot(name, "int8", "int8", "int32")


def dot_u8i8i32(name: str) -> TensorIntrin:
    """C[i] += A[i, k] * B[i, k] of uint8 and int8 in int32."""
    return _dot(name, "uint8", "int8", "int32")


def dot_f32(name: str) -> TensorIntrin:
    """C[i] += A[i, k] * B[i, k] of float32."""
    return _dot(name, "float32", "float32", "float32")


def _dot(name: str, left: str, right: str, result: str) -> TensorIntrin:
    """The lanes are vectors, and the steps are unrolled."""
    a = te.placeholder((LANES, STEPS), left, name="A")
    b = te.placeholder((LANES, STEPS), right, name="B")
    k = te.reduce_axis((0, STEPS), name="k")

    def product(i: te.Index) -> te.Value:
        return te.sum(te.cast(a[i, k], result) * te.cast(b[i, k], result), axis=k)

    desc = accumulating(te.create_prim_func([a, b, te.compute((LANES,), product, name="C")], name=name))
    sch = Schedule(desc)
    lanes, steps = sch.get_loops(sch.get_block("C"))
    sch.reorder(steps, lanes)
    sch.unroll(steps)
    sch.vectorize(lanes)
    return TensorIntrin(name, desc, sch.func)
