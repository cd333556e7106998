"""What the thread pool needs of a C library, in assembly over Linux's system calls: threads (one beside the
first), futexes, the clock. The environment is empty, and signals are left as they are."""

_AARCH64 = """
.globl syscall, pthread_create, getpid, clock_gettime
syscall: mov x8, x0; mov x0, x1; mov x1, x2; mov x2, x3; mov x3, x4; mov x4, x5; mov x5, x6; svc #0; ret
getpid: mov x8, #172; svc #0; ret
clock_gettime: mov x8, #113; svc #0; ret
pthread_create:
  adrp x9, stack_top
  add x9, x9, :lo12:stack_top
  sub x9, x9, #16
  stp x2, x3, [x9]
  mov x0, #0x0f00
  movk x0, #5, lsl #16
  mov x1, x9
  mov x2, #0
  mov x3, #0
  mov x4, #0
  mov x8, #220
  svc #0
  cbz x0, 1f
  mov x0, #0
  ret
1: ldp x2, x0, [sp]
  blr x2
"""
_RISCV64 = """
.globl syscall, pthread_create, getpid, clock_gettime
syscall: mv a7, a0; mv a0, a1; mv a1, a2; mv a2, a3; mv a3, a4; mv a4, a5; mv a5, a6; ecall; ret
getpid: li a7, 172; ecall; ret
clock_gettime: li a7, 113; ecall; ret
pthread_create:
  la t0, stack_top
  addi t0, t0, -16
  sd a2, 0(t0)
  sd a3, 8(t0)
  li a0, 0x50f00
  mv a1, t0
  li a2, 0
  li a3, 0
  li a4, 0
  li a7, 220
  ecall
  beqz a0, 1f
  li a0, 0
  ret
1: ld t1, 0(sp)
  ld a0, 8(sp)
  jalr t1
"""
#: CLONE_VM, _FS, _FILES, _SIGHAND, _THREAD and _SYSVSEM are 0x50f00 above.
_STACK = ".bss; .balign 16; .skip 65536; stack_top:\n"
_NOTHING = (
    "getenv", "atoll", "pthread_attr_init", "pthread_attr_destroy", "pthread_attr_setdetachstate",
    "pthread_attr_setstacksize", "pthread_sigmask", "sigfillset", "sigdelset",
)  # fmt: skip
_RETURN_0 = {"aarch64": "mov x0, #0; ret", "riscv64": "li a0, 0; ret"}


def c_library(architecture: str) -> str:
    """The text, to go behind other text of the section."""
    code = _AARCH64 if architecture == "aarch64" else _RISCV64
    for name in _NOTHING:
        code += f".globl {name}; {name}: {_RETURN_0[architecture]}\n"
    return code + _STACK
