"""The thread pool that parallel loops run on, as LLVM text: compiled once in a process, and into every object
that is exported with parallel loops, so that it needs no compiler and no library but C's.

    void tilewright_parallel(void (*body)(int64_t begin, int64_t end, int64_t thread, void *context),
                             void *context, int64_t n, int64_t threads)

runs `body` over [0, n) in pieces, on the calling thread (thread 0) and at most `threads - 1` others, and
returns when all of it is done. Nobody waits for a thread: who is there takes the next piece, so that a worker
that comes late, or is gone, costs nothing but its help. A call that finds the pool in use - one from inside a
body, or of another thread - runs its loop in place, as thread 0.

One word holds a launch's number and which pieces are left: the caller takes them from the front and the
others from the back, so that a thread mostly meets the data of its last call again. Pieces that are one
iteration longer than others lie evenly between these: both halves of them are as long. A piece is taken by a
change of the word from the value that was seen; as the launch's description changes only while no piece is
left, what was read before is then the description of that very launch. The lock holds the number of the
process it belongs to: after a fork the child finds another one's and starts afresh, without threads. A worker
that finds nothing to do for `spin` nanoseconds sleeps on a futex.

Where there are no futexes (other systems than Linux) the loop runs in place.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from string import Template

from ...runtime.pool import PARALLEL, SET_SPIN, SET_THREADS, START_THREADS
from ...target import Target
from ...target.attributes import MOST_THREADS
from ...target.host import architecture
from ...target.triple import system_of
from .pool_code import IN_PLACE, POOL

#: What an object with the pool defines beside its kernels.
FUNCTIONS = (PARALLEL, SET_THREADS, SET_SPIN, START_THREADS)
DECLARATION = f"declare void @{PARALLEL}(ptr, ptr, i64, i64)"

#: Pieces for each thread: a thread that is held up by others on its core leaves its rest to the other ones.
PIECES = 4
#: How long a worker looks for the next launch before it sleeps, unless TILEWRIGHT_SPIN_US says otherwise:
#: longer than threads wait for each other's last pieces, since on virtual machines a sleeping one is back
#: only after 0.1 ms.
SPIN_MICROSECONDS = 1000
#: Pauses of a launching thread that waits for the last pieces, before it sleeps: about a millisecond.
PAUSES = 64_000

_FUTEX = {"x86_64": 202, "aarch64": 98, "riscv64": 98}
"""The number of Linux's system call."""
_PAUSE = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
    "riscv64": ("", 'call void asm sideeffect "", "~{memory}"()'),
}


def pool_text(architecture: str, system: str) -> str:
    """The definitions, each one that a linker keeps a single copy of."""
    if system != "linux" or architecture not in _FUTEX:
        return IN_PLACE
    declared, pause = _PAUSE[architecture]
    return Template(POOL).substitute(
        pause_declared=declared,
        pause=pause,
        futex=_FUTEX[architecture],
        pieces=PIECES,
        most=MOST_THREADS,
        spin=SPIN_MICROSECONDS * 1000,
        turns=PAUSES,
    )


def exported_pool(target: Target) -> str:
    """The pool that goes into an exported object: hidden but for the function that sets the threads."""
    text = pool_text(target.architecture, _system(target))
    return _visible(text, (SET_THREADS,), "linkonce_odr ")


def pool_object() -> bytes:
    """The pool of this process, as an object whose functions can be looked up."""
    from .jit import emit_object

    target = Target.parse("llvm")
    text = pool_text(target.architecture, sys.platform)
    return emit_object("", target, _visible(text, FUNCTIONS, ""))


def _system(target: Target) -> str:
    """The system that the object is for: this machine's where the target names none and could run here."""
    if not target.attribute("mtriple") and target.architecture == architecture():
        return sys.platform
    return system_of(target.triple)


def _visible(text: str, functions: Iterable[str], linkage: str) -> str:
    for name in functions:
        for kind in ("void", "i64"):
            text = text.replace(f"linkonce_odr hidden {kind} @{name}(", f"{linkage}{kind} @{name}(")
    return text
