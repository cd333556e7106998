"""A scheduled program as a static executable."""

from __future__ import annotations

from dataclasses import replace

from ...ir import PrimFunc
from ...target import Target
from ..errors import BuildError
from ..llvm.jit import emit_object, joined
from ..lower import lower
from .harness import ENTRY, Memory, harness
from .layout import Layout
from .link import linked
from .linux import SYSTEM, linux

MOST_MEMORY = 1 << 30
"""The most bytes of a program's arrays, where nobody says less."""


def standalone_program(func: PrimFunc, target: Target, most_memory: int = MOST_MEMORY) -> bytes:
    """The executable of a scheduled program for Linux on the target's processor, as `harness` describes it.

    Raises BuildError for what cannot be lowered, for kinds of targets other than llvm, for several threads,
    for sizes that are not numbers, and for arrays of more than `most_memory` bytes in all.
    """
    if target.kind != "llvm":
        raise BuildError(f"a program of its own is made by the kind 'llvm', not by {target.kind!r}")
    if target.num_threads > 1:
        raise BuildError(f"num-threads={target.num_threads}: a program of its own has one thread")
    system = linux(target.architecture)
    lowered = lower(func, target)
    if lowered.sizes:
        raise BuildError(f"the sizes {', '.join(lowered.sizes)} are not known before the call")
    memory = Memory.of(lowered)
    layout = Layout.of(lowered.params)
    if memory.bytes > most_memory:
        raise BuildError(f"its arrays need {memory.bytes} bytes, and the limit is {most_memory}")
    around = harness(lowered, layout, memory, system, aligns_stack=target.architecture == "x86_64")
    code = emit_object(joined([lowered.text, around]), _for_linux(target))
    return linked(code, (SYSTEM, system.code), ENTRY)


def _for_linux(target: Target) -> Target:
    """The same processor under Linux, whatever this machine's system is."""
    kept = tuple((name, value) for name, value in target.attributes if name != "mtriple")
    triple = f"{target.architecture}-unknown-linux-gnu"
    return replace(target, attributes=tuple(sorted((*kept, ("mtriple", triple)))))
