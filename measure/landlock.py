"""What a candidate may no longer reach: files, the network, other processes; on Linux that knows how.

Two means that need no privilege: a Landlock ruleset (landlock(7)), which takes files, TCP, signals and
tracing away, each from the kernel on that knows it (5.13, 6.7, 6.12), and a seccomp filter (seccomp(2)) that
refuses some system calls altogether. Neither can be undone by the process, nor by its children.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct
import sys
import sysconfig
from collections.abc import Iterable

__all__ = ["READABLE", "refuse_calls", "restrict", "version"]

# The numbers of these calls are the same on every architecture.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
# How many of the rights to files each version of the interface knows.
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
_MOST_FILE_RIGHTS = 16
_BIND_AND_CONNECT = 0b11
_ABSTRACT_SOCKETS_AND_SIGNALS = 0b11

_PR_SET_SECCOMP = 22
_MODE_FILTER = 2
_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW = 0x7FFF0000
_REFUSE = 0x00050001  # with EPERM
_X32 = 0x40000000
# (AUDIT_ARCH_…, number of each call); from asm/unistd.h.
_CALLS = {
    "x86_64": (
        0xC000003E,
        (41, 42, 49, 50, 59, 101, 155, 165, 248, 249, 250, 272, 298, 308, 310, 311, 321, 322, 323),
    ),
    "aarch64": (
        0xC00000B7,
        (198, 200, 201, 203, 221, 117, 41, 40, 217, 218, 219, 97, 241, 268, 270, 271, 280, 281, 282),
    ),
}
"""socket, connect, bind, listen, execve, ptrace, pivot_root, mount, add_key, request_key, keyctl, unshare,
perf_event_open, setns, process_vm_readv, process_vm_writev, bpf, execveat, userfaultfd; then, everywhere:"""
_NEW_CALLS = (424, 425, 426, 427, 434, 438)
"""pidfd_send_signal, io_uring_setup, io_uring_enter, io_uring_register, pidfd_open, pidfd_getfd."""


def _code() -> tuple[str, ...]:
    """Where code is that a candidate may load late: libraries and modules, no place of anybody's data."""
    paths = sysconfig.get_paths()
    here = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    package = [os.path.join(here, name) for name in ("compiler", "measure")]
    libraries = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache")
    return (*(paths[name] for name in ("stdlib", "platlib", "purelib")), *package, *libraries)


READABLE = ("/proc/self", "/sys/devices/system/cpu", "/dev/null", *_code())
"""What stays readable."""


def version() -> int:
    """The version of the kernel's interface; 0 where there is none."""
    if sys.platform != "linux":
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    return max(0, int(libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)))


def restrict(readable: Iterable[str] = READABLE) -> int:
    """Lets this thread, and what it starts, read these files and what is below them, and no other, write
    none, use no TCP, and signal and trace nobody outside. Needs `no_new_privs`.

    The version of the kernel's interface that did it; 0 where there is none. Never raises.
    """
    known = version()
    if known == 0:
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    files = (1 << _FILE_RIGHTS.get(known, _MOST_FILE_RIGHTS)) - 1
    network = _BIND_AND_CONNECT if known >= 4 else 0
    scoped = _ABSTRACT_SOCKETS_AND_SIGNALS if known >= 6 else 0
    size = 24 if known >= 6 else 16 if known >= 4 else 8
    rules = libc.syscall(
        _CREATE_RULESET, struct.pack("=QQQ", files, network, scoped), ctypes.c_size_t(size), 0
    )
    if rules < 0:
        return 0
    try:
        for path in readable:
            with contextlib.suppress(OSError):
                _allow(libc, rules, path)
        return 0 if libc.syscall(_RESTRICT_SELF, rules, 0) else known
    finally:
        os.close(rules)


def _allow(libc: ctypes.CDLL, rules: int, path: str) -> None:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rights = _READ_FILE | (_READ_DIR if os.path.isdir(path) else 0)
        libc.syscall(_ADD_RULE, rules, _PATH_BENEATH, struct.pack("=Qi", rights, descriptor), 0)
    finally:
        os.close(descriptor)


def refuse_calls() -> bool:
    """Lets this process make no socket, run no program, trace nobody and leave no namespace: such calls are
    refused with EPERM. Needs `no_new_privs`. Whether it was done. Never raises."""
    known = _CALLS.get(platform.machine()) if sys.platform == "linux" else None
    if known is None or sys.maxsize < 2**32:
        return False
    architecture, numbers = known
    refused = (*numbers, *_NEW_CALLS)
    left = len(refused)
    code = [
        _step(_LOAD, 4),
        # Another architecture's numbers mean other calls: of a process of ours there are none.
        _step(_JUMP_EQUAL, architecture, 0, left + 3),
        _step(_LOAD, 0),
        _step(_JUMP_AT_LEAST, _X32, left + 1, 0),
        *(_step(_JUMP_EQUAL, number, left - n, 0) for n, number in enumerate(refused)),
        _step(_RETURN, _ALLOW),
        _step(_RETURN, _REFUSE),
    ]
    text = ctypes.create_string_buffer(b"".join(code))
    program = struct.pack("@HP", len(code), ctypes.addressof(text))
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, program, 0, 0) == 0)


def _step(code: int, k: int, true: int = 0, false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, true, false, k)
