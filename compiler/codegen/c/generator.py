"""The code generator for the target kind `c`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from ...arith import NotProvable
from ...ir import PrimFunc
from ...passes import lowering, split_ahead
from ...runtime import PackInfo
from ...target import Target
from ..dims import pack_of
from ..errors import BuildError
from ..lowered import Lowered
from .compile import compile_assembly, compile_object
from .emitter import Kernel, emit
from .loaded import LoadedLibrary, compile_c
from .names import PREFIX
from .unit import translation_unit


@dataclass(frozen=True, slots=True, kw_only=True)
class LoweredC(Lowered):
    """A C file of one kernel, and without the file around them the kernel and what runs before its calls."""

    kernels: tuple[Kernel, ...]


@dataclass(frozen=True, slots=True)
class CGenerator:
    """C11 that people can read, compiled by the machine's C compiler where there is one."""

    def lower(self, func: PrimFunc, target: Target) -> LoweredC:
        """The scheduled program as one C file, which needs no compiler. Raises BuildError, with the step's
        name and the loop or block, for what cannot be lowered.
        """
        k, pack, before = self._kernels(func, target)
        kernels = (k,) if pack is None else (k, pack)
        text = translation_unit(kernels, target)
        return LoweredC(k.name, text, k.params, k.workspaces, k.sizes, before, kernels=kernels)

    def load(self, lowered: Lowered, target: Target) -> LoadedLibrary:
        """Compiles and loads it. Raises BuildError: no compiler, or one that refuses, or another machine."""
        return compile_c(lowered.text, target, lowered.symbols)

    def emit_object(self, lowered: Sequence[Lowered], target: Target, metadata: bytes) -> bytes:
        """The functions as the C compiler makes them of one file. Raises BuildError, also where there is no
        compiler.

        Objects joined by a linker will not do: each brings constants of its own by the same local names, and
        LLVM's loader takes one for the other.
        """
        kernels = [k for one in lowered if isinstance(one, LoweredC) for k in one.kernels]
        return compile_object("\n".join([translation_unit(kernels, target), _constant(metadata)]), target)

    def emit_assembly(self, text: str, target: Target) -> str:
        """As the C compiler makes it. Raises BuildError."""
        return compile_assembly(text, target)

    def load_together(self, kernels: Sequence[Kernel], target: Target) -> LoadedLibrary:
        """Kernels of different names, compiled as one file: a compiler takes longer to start than for one of
        them. Raises BuildError.
        """
        return compile_c(translation_unit(kernels, target), target, [k.name for k in kernels])

    def kernel(self, func: PrimFunc, target: Target, *, versioned: bool = True) -> Kernel:
        """The function without the file around it: several may share one. `versioned`: whole tiles get a
        version without predicates. Raises BuildError for a program that makes something ahead of its calls,
        which is two functions.
        """
        kernel, pack, _ = self._kernels(func, target, versioned=versioned)
        if pack is not None:
            raise BuildError(f"{kernel.name} is two functions: {pack.name} runs before it")
        return kernel

    def _kernels(
        self, func: PrimFunc, target: Target, *, versioned: bool = True
    ) -> tuple[Kernel, Kernel | None, PackInfo | None]:
        """The function, and what runs before its calls."""
        try:
            kernel, pack = split_ahead(lowering(target).run(func))
            made = emit(kernel, target, versioned=versioned)
            if pack is None:
                return made, None, None
            before = emit(pack, target)
            return made, before, pack_of(kernel, before.name, before.params, before.workspaces)
        except NotProvable as e:
            # An index that lowering had to take apart, of a schedule that no search makes.
            raise BuildError(f"lower: {e}") from e


generator = CGenerator()


def _constant(data: bytes) -> str:
    """The bytes in a section of their own, which no compiler drops and no other object's clash with."""
    place = 'section("__TEXT,__tilewright")' if sys.platform == "darwin" else 'section(".tilewright")'
    numbers = ",".join(map(str, data))
    return f"__attribute__(({place}, used)) static const unsigned char {PREFIX}metadata[] = {{{numbers}}};\n"
