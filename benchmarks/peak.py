"""The machine's limits, measured in the same run: multiply-adds a second of one core, and bytes a second of a
large copy."""

from __future__ import annotations

import time

import numpy as np

from tilewright.compiler.codegen.llvm.jit import compile_ir
from tilewright.compiler.target import Target


def _kernel(lanes: int, accumulators: int) -> str:
    vector = f"<{lanes} x float>"
    names = range(accumulators)
    phis = "\n".join(
        f"  %a{n} = phi {vector} [ splat (float {n}.0), %entry ], [ %b{n}, %loop ]" for n in names
    )
    body = "\n".join(
        f"  %b{n} = call {vector} @llvm.fmuladd.v{lanes}f32({vector} %a{n}, {vector} %x, {vector} %y)"
        for n in names
    )
    sums = "\n".join(
        f"  %s{n} = fadd {vector} {'%b0' if n == 1 else f'%s{n - 1}'}, %b{n}" for n in range(1, accumulators)
    )
    return f"""
declare {vector} @llvm.fmuladd.v{lanes}f32({vector}, {vector}, {vector})
define void @peak(ptr %out, ptr %in) {{
entry:
  %x = load {vector}, ptr %in, align 4
  %q = getelementptr float, ptr %in, i64 {lanes}
  %y = load {vector}, ptr %q, align 4
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
{phis}
{body}
  %j = add i64 %i, 1
  %c = icmp slt i64 %j, 1000000
  br i1 %c, label %loop, label %done
done:
{sums}
  store {vector} %s{accumulators - 1}, ptr %out, align 4
  ret void
}}
"""


def fma_peak(target: Target) -> float:
    """Floating point operations a second of one core, float32: the best of a few loops of independent
    multiply-adds."""
    import ctypes

    lanes = target.lanes(32)
    accumulators = 16 if target.vector_registers >= 32 else 12
    loaded = compile_ir(_kernel(lanes, accumulators), target, ["peak"])
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(loaded.address("peak"))
    source = np.full(2 * lanes, 0.001, np.float32)
    source[:lanes] = 0.999
    out = np.empty(lanes, np.float32)
    best = float("inf")
    for _ in range(7):
        start = time.thread_time()
        call(out.ctypes.data, source.ctypes.data)
        best = min(best, time.thread_time() - start)
    return 2.0 * lanes * accumulators * 1_000_000 / best


def bandwidth() -> float:
    """Bytes a second (read and written together) of a copy that no cache holds."""
    a = np.ones(1 << 26, np.uint8)
    b = np.empty_like(a)
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        np.copyto(b, a)
        best = min(best, time.perf_counter() - start)
    return 2 * a.nbytes / best
