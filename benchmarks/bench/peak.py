"""Operations a second that one core, or several at once, can do: float32 multiply-adds, and the dot products
of narrow types where the target has an instruction for them."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import llvmlite.binding as llvm
import numpy as np

from tilewright.compiler.codegen.llvm.jit import compile_ir
from tilewright.compiler.target import Target

#: Turns of the timed loop: a few milliseconds.
TURNS = 1_000_000
Pick = Callable[[Sequence[float]], float]
TRIES = 7


def peaks(target: Target, threads: int = 1, pick: Pick = min) -> dict[str, float]:
    """Operations a second (a multiply-add is two) by the dtype of the inputs; float16 computes in float32.
    int8 and bfloat16 are there where the target multiplies and adds them in one instruction. `pick` makes one
    time of several: the least, or the median where times that are medians are compared with it."""
    # The dot products are inline assembly: the names of LLVM's intrinsics change from version to version.
    llvm.initialize_native_asmparser()
    lanes = target.lanes(32)
    fma = f"call <{lanes} x float> @llvm.fmuladd.v{lanes}f32(VF %a, VF %x, VF %y)"
    found = {"float32": _rate(target, fma, "float", 2, threads, pick)}
    found["float16"] = found["float32"]
    dot = f'call <{lanes} x {{}}> asm "{{}} $2, $1, $0", "=v,v,v,0"(VF %x, VF %y, VF %a)'
    if {"avx512vnni", "avxvnni"} & set(target.features):
        found["int8"] = _rate(target, dot.format("i32", "vpdpbusd"), "i32", 8, threads, pick)
    if "avx512bf16" in target.features:
        found["bfloat16"] = _rate(target, dot.format("float", "vdpbf16ps"), "float", 4, threads, pick)
    return found


def _rate(target: Target, operation: str, element: str, each: int, threads: int, pick: Pick) -> float:
    """Operations a second of a loop of independent `operation`s, each with `each` for every lane: the best of
    a few."""
    lanes = target.lanes(32)
    count = 16 if target.vector_registers >= 32 else 12
    loaded = compile_ir(_loop(operation, element, lanes, count), target, ["peak"])
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(loaded.address("peak"))

    def one(_: int) -> None:
        # Values near 1 for floats; integers wrap, which takes no time.
        source = np.full(2 * lanes, 0.001, np.float32)
        source[:lanes] = 0.999
        out = np.empty(lanes, np.float32)
        call(out.ctypes.data, source.ctypes.data)

    return each * lanes * count * TURNS * threads / fastest(one, threads, pick=pick)


def fastest(one: Callable[[int], object], threads: int, tries: int = TRIES, pick: Pick = min) -> float:
    """The least seconds of `one(number)`, or what `pick` makes of several, run on so many threads at once:
    processor time of one thread, wall time of several."""
    seconds: list[float] = []
    if threads == 1:
        for _ in range(tries):
            start = time.thread_time()
            one(0)
            seconds.append(time.thread_time() - start)
        return pick(seconds)
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(tries):
            start = time.perf_counter()
            list(pool.map(one, range(threads)))
            seconds.append(time.perf_counter() - start)
    return pick(seconds)


def _loop(operation: str, element: str, lanes: int, count: int) -> str:
    vector = f"<{lanes} x {element}>"
    zero = "0.0" if element == "float" else "0"
    phis = "\n".join(
        f"  %a{n} = phi {vector} [ splat ({element} {zero}), %entry ], [ %b{n}, %loop ]" for n in range(count)
    )
    body = "\n".join(
        f"  %b{n} = {operation}".replace("VF", vector).replace("%a", f"%a{n}") for n in range(count)
    )
    add = "fadd" if element == "float" else "add"
    sums = "\n".join(
        f"  %s{n} = {add} {vector} {'%b0' if n == 1 else f'%s{n - 1}'}, %b{n}" for n in range(1, count)
    )
    return f"""
declare <{lanes} x float> @llvm.fmuladd.v{lanes}f32(<{lanes} x float>, <{lanes} x float>, <{lanes} x float>)
define void @peak(ptr %out, ptr %in) {{
entry:
  %x = load {vector}, ptr %in, align 4
  %q = getelementptr {element}, ptr %in, i64 {lanes}
  %y = load {vector}, ptr %q, align 4
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
{phis}
{body}
  %j = add i64 %i, 1
  %c = icmp slt i64 %j, {TURNS}
  br i1 %c, label %loop, label %done
done:
{sums}
  store {vector} %s{count - 1}, ptr %out, align 4
  ret void
}}
"""
