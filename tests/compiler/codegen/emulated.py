"""Kernels of other processors, run by QEMU: an object, a start routine that we emit ourselves, and binutils'
assembler and linker; no C compiler and no C library."""

import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.compiler.codegen.llvm.jit import emit_object, joined
from tilewright.compiler.codegen.llvm.pool import DECLARATION, exported_pool
from tilewright.compiler.codegen.lower import lower
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.runtime.dims import evaluate
from tilewright.compiler.target import Target

from .emulated_threads import c_library

Array = np.ndarray[Any, Any]

#: Architecture -> QEMU's options. Registers are as wide as those of the processors that the tests name.
QEMU = {"aarch64": ("-cpu", "max"), "riscv64": ("-cpu", "rv64,v=true,vlen=512,vext_spec=v1.0,Zfh=true")}

#: Architecture -> `i64 system(i64 number, i64, ptr, i64)`: a system call of Linux.
SYSTEM = {
    "aarch64": "mov x8, x0; mov x0, x1; mov x1, x2; mov x2, x3; svc #0; ret",
    "riscv64": "mv a7, a0; mv a0, a1; mv a1, a2; mv a2, a3; ecall; ret",
}
#: Numbers of Linux's system calls, the same on both architectures. The last ends every thread.
READ, WRITE, EXIT = 63, 64, 94
LIMIT_SECONDS = 60


class EmulatorFault(Exception):
    """QEMU itself failed: 7.2 aborts on vector conversions of RISC-V from floats to integers."""


@cache
def missing(architecture: str) -> str:
    """What is not installed of the tools for an architecture; empty where all of it is there."""
    return ", ".join(t for t in _tools(architecture) if shutil.which(t) is None)


def _tools(architecture: str) -> tuple[str, str, str]:
    return f"qemu-{architecture}-static", f"{architecture}-linux-gnu-as", f"{architecture}-linux-gnu-ld"


def run(func: PrimFunc, arrays: Sequence[Array], target: Target, folder: Path, **options: Any) -> list[Array]:
    """The arrays of the parameters after a call of the kernel on copies of them. Raises AssertionError with
    what the emulator says when the program does not end well.
    """
    lowered = lower(func, target, **options)
    emulator, assembler, linker = _tools(target.architecture)
    scratch = [int(evaluate(w.bytes, {})) for w in lowered.workspaces]
    start = _start(lowered.name, [x.nbytes for x in arrays], scratch)
    code, program = folder / "kernel.o", folder / "program"
    is_parallel = DECLARATION in lowered.text
    pool = exported_pool(target) if is_parallel else ""
    code.write_bytes(emit_object(joined((lowered.text, start)), target, pool))
    system = folder / "system.o"
    text = f".text; .globl system; system: {SYSTEM[target.architecture]}\n"
    text += c_library(target.architecture) if is_parallel else ""
    subprocess.run([assembler, "-o", system, "-"], input=text.encode(), check=True, capture_output=True)
    relax = ["--no-relax"] if target.architecture == "riscv64" else []
    subprocess.run([linker, "-static", *relax, "-o", program, code, system], check=True, capture_output=True)
    done = subprocess.run(
        [emulator, *QEMU[target.architecture], program],
        input=b"".join(x.tobytes() for x in arrays),
        capture_output=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    if b"qemu" in done.stderr and b"Assertion" in done.stderr:
        raise EmulatorFault(done.stderr.decode(errors="replace"))
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr.decode(errors='replace')}"
    out, at = [], 0
    for x in arrays:
        out.append(np.frombuffer(done.stdout, x.dtype, x.size, at).reshape(x.shape))
        at += x.nbytes
    assert at == len(done.stdout)
    return out


def _start(kernel: str, sizes: Sequence[int], scratch: Sequence[int]) -> str:
    """Reads every parameter from standard input, calls the kernel, and writes every parameter to standard
    output.
    """
    names = [f"@a{n}" for n in range(len(sizes) + len(scratch))]
    data = [
        f"{name} = internal global [{max(size, 1)} x i8] zeroinitializer, align 64"
        for name, size in zip(names, [*sizes, *scratch], strict=True)
    ]
    steps = [
        f"  call void @all(i64 {READ}, i64 0, ptr {x}, i64 {n})" for x, n in zip(names, sizes, strict=False)
    ]
    steps.append(f"  call void @{kernel}({', '.join(f'ptr {x}' for x in names)})")
    steps += [
        f"  call void @all(i64 {WRITE}, i64 1, ptr {x}, i64 {n})" for x, n in zip(names, sizes, strict=False)
    ]
    nothing = f"  call i64 @system(i64 {EXIT}, i64 0, ptr null, i64 0)"
    return "\n".join([
        *data,
        # Not declared as a function: kernels may call none.
        "@system = external global i8",
        "define internal void @all(i64 %n, i64 %file, ptr %at, i64 %bytes) noinline {",
        "entry:",
        "  br label %test",
        "test:",
        "  %done = phi i64 [ 0, %entry ], [ %sum, %more ]",
        "  %left = sub i64 %bytes, %done",
        "  %ended = icmp sle i64 %left, 0",
        "  br i1 %ended, label %out, label %more",
        "more:",
        "  %p = getelementptr i8, ptr %at, i64 %done",
        "  %r = call i64 @system(i64 %n, i64 %file, ptr %p, i64 %left)",
        "  %sum = add i64 %done, %r",
        "  %failed = icmp sle i64 %r, 0",
        "  br i1 %failed, label %out, label %test",
        "out:",
        "  ret void",
        "}",
        "define void @_start() {",
        *steps,
        nothing,
        "  unreachable",
        "}",
    ])  # fmt: skip
