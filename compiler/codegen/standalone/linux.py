"""What Linux looks like from each architecture: how a program begins and how it calls the system.

Numbers of system calls: the kernel's arch/x86/entry/syscalls/syscall_64.tbl and
include/uapi/asm-generic/unistd.h, which are part of its stable interface.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import BuildError

START, SYSTEM = "_start", "tilewright.system"


@dataclass(frozen=True, slots=True)
class Linux:
    """`code` is the machine code of `i64 system(i64 number, i64, i64, i64, i64, i64, i64)`; what follows are
    numbers of calls."""

    code: bytes
    read: int
    write: int
    mmap: int
    exit_group: int
    clock_gettime: int
    setitimer: int
    prctl: int


# mov rax, rdi; mov rdi, rsi; mov rsi, rdx; mov rdx, rcx; mov r10, r8; mov r8, r9; mov r9, [rsp+8];
# syscall; ret
_X86_SYSTEM = "4889f8 4889f7 4889d6 4889ca 4d89c2 4d89c8 4c8b4c2408 0f05 c3"
# mov x8, x0; mov x0, x1; ... mov x5, x6; svc #0; ret
_AARCH64_SYSTEM = "e80300aa e00301aa e10302aa e20303aa e30304aa e40305aa e50306aa 010000d4 c0035fd6"
# mv a7, a0; mv a0, a1; ... mv a5, a6; ecall; ret
_RISCV64_SYSTEM = "93080500 13850500 93050600 13860600 93060700 13870700 93070800 73000000 67800000"

SYSTEMS: Mapping[str, Linux] = {
    "x86_64": Linux(bytes.fromhex(_X86_SYSTEM), 0, 1, 9, 231, 228, 38, 157),
    "aarch64": Linux(bytes.fromhex(_AARCH64_SYSTEM), 63, 64, 222, 94, 113, 103, 167),
    "riscv64": Linux(bytes.fromhex(_RISCV64_SYSTEM), 63, 64, 222, 94, 113, 103, 167),
}


def linux(architecture: str) -> Linux:
    """Raises BuildError for an architecture without one."""
    if architecture not in SYSTEMS:
        raise BuildError(
            f"no program of its own can be made for {architecture}, only for {', '.join(SYSTEMS)}"
        )
    return SYSTEMS[architecture]
