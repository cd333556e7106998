"""Bytes a second that one core, or several at once, read, copy and combine, from each cache and memory."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np

from tilewright.compiler.codegen.llvm.jit import compile_ir
from tilewright.compiler.target import Target

from .peak import fastest

#: Arrays read and written: read sums, copy is a = b, triad is a = b + s * c (as McCalpin's STREAM).
STREAMS = {"read": (1, 0), "copy": (1, 1), "triad": (2, 1)}
#: Vectors in one turn of a loop.
UNROLL = 8
#: Bytes that one timed call moves, at least.
SPAN = 1 << 26


def levels() -> dict[str, int]:
    """The capacity of each cache of this machine, and 0 for memory."""
    host = Target.parse("llvm")
    sizes = {"L1": host.l1d, "L2": host.l2, "L3": host.l3}
    return {**{n: s for n, s in sizes.items() if s}, "memory": 0}


def bandwidths(target: Target, threads: int = 1) -> dict[str, dict[str, float]]:
    """For each level, bytes a second (read and written together, without the lines that a store fetches) of
    read, copy and triad on half its capacity, or on four times the last cache for memory; with stores past
    the caches where that is faster. The first two caches are each thread's own, the rest is shared."""
    found: dict[str, dict[str, float]] = {}
    last = max(levels().values())
    for level, capacity in levels().items():
        total = capacity // 2 or max(4 * last, 1 << 26)
        each = total if level in ("L1", "L2") else total // threads
        found[level] = {}
        for kind in STREAMS:
            ways = (False, True) if level == "memory" and kind != "read" else (False,)
            found[level][kind] = max(_rate(target, kind, each, past, threads) for past in ways)
    return found


def _rate(target: Target, kind: str, total: int, past: bool, threads: int) -> float:
    read, written = STREAMS[kind]
    lanes = target.lanes(32)
    turn = 4 * lanes * UNROLL
    turns = max(1, total // (read + written) // turn)
    moved = turns * turn * (read + written)
    repeats = max(1, SPAN // moved)
    loaded = compile_ir(_loop(kind, lanes, past), target, ["stream"])
    pointers, numbers = [ctypes.c_void_p] * 3, [ctypes.c_int64] * 2
    call = ctypes.CFUNCTYPE(None, *pointers, *numbers)(loaded.address("stream"))
    arrays = [[_pages(turns * turn) for _ in range(3)] for _ in range(threads)]

    def one(number: int) -> None:
        call(*(a.ctypes.data for a in arrays[number]), turns, repeats)

    return moved * repeats * threads / fastest(one, threads, tries=5)


def _pages(size: int) -> np.ndarray:
    pages = mmap.mmap(-1, size)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        pages.madvise(mmap.MADV_HUGEPAGE)
    array = np.frombuffer(pages, np.uint8)
    array[:] = 0
    return array


def _loop(kind: str, lanes: int, past: bool) -> str:
    """stream(a, b, c, turns, repeats)."""
    vector = f"<{lanes} x float>"
    align = 4 * lanes
    lines = []
    for u in range(UNROLL):
        for name, used in (("b", True), ("c", kind == "triad")):
            if used:
                lines.append(f"  %p{name}{u} = getelementptr {vector}, ptr %{name}, i64 %v{u}")
                lines.append(f"  %{name}{u} = load {vector}, ptr %p{name}{u}, align {align}")
        if kind == "read":
            lines.append(f"  %t{u} = fadd {vector} %s{u}, %b{u}")
            continue
        value = f"%b{u}"
        if kind == "triad":
            lines.append(f"  %m{u} = fmul {vector} %c{u}, splat (float 3.0)")
            lines.append(f"  %w{u} = fadd {vector} %b{u}, %m{u}")
            value = f"%w{u}"
        hint = ", !nontemporal !0" if past else ""
        lines.append(f"  %pa{u} = getelementptr {vector}, ptr %a, i64 %v{u}")
        lines.append(f"  store {vector} {value}, ptr %pa{u}, align {align}{hint}")
    places = "\n".join(f"  %v{u} = add i64 %first, {u}" for u in range(UNROLL))
    sums = outer = last = ""
    if kind == "read":
        # The sums go on from repeat to repeat, so that no repeat can be left out.
        outer = "\n".join(
            f"  %o{u} = phi {vector} [ zeroinitializer, %entry ], [ %t{u}, %next ]" for u in range(UNROLL)
        )
        sums = "\n".join(f"  %s{u} = phi {vector} [ %o{u}, %again ], [ %t{u}, %loop ]" for u in range(UNROLL))
        last = "\n".join(
            f"  %q{u} = getelementptr {vector}, ptr %a, i64 {u}\n"
            f"  store {vector} %t{u}, ptr %q{u}, align {align}"
            for u in range(UNROLL)
        )
    body = "\n".join(lines)
    return f"""
define void @stream(ptr noalias %a, ptr noalias %b, ptr noalias %c, i64 %turns, i64 %repeats) {{
entry:
  br label %again
again:
  %r = phi i64 [ 0, %entry ], [ %r1, %next ]
{outer}
  br label %loop
loop:
  %i = phi i64 [ 0, %again ], [ %j, %loop ]
{sums}
  %first = mul i64 %i, {UNROLL}
{places}
{body}
  %j = add i64 %i, 1
  %more = icmp slt i64 %j, %turns
  br i1 %more, label %loop, label %next
next:
  %r1 = add i64 %r, 1
  %once = icmp slt i64 %r1, %repeats
  br i1 %once, label %again, label %done
done:
{last}
  ret void
}}
!0 = !{{i32 1}}
"""
