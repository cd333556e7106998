"""Code of the kind pyref: a callback that interprets the program."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.compiler.codegen.errors import BuildError
from tilewright.compiler.codegen.lowered import Lowered
from tilewright.compiler.interpret import run
from tilewright.compiler.ir import Buffer, PrimFunc, flop_count, script
from tilewright.compiler.runtime import ParamInfo
from tilewright.compiler.runtime.arrays import numpy_dtype
from tilewright.compiler.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Program(Lowered):
    """What lowering gives: the program itself beside its text."""

    func: PrimFunc


class Interpreted:
    """A program that a callback interprets at each call."""

    def __init__(self, program: Program, target: Target) -> None:
        self.text = program.text
        self.target = target
        self._name = program.name
        func = program.func
        prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(func.params))
        self._callback = prototype(lambda *addresses: run(func, _arrays(func.params, addresses)))

    def address(self, name: str) -> int:
        """Address of the callback."""
        if name != self._name:
            raise KeyError(name)
        return ctypes.cast(self._callback, ctypes.c_void_p).value or 0

    def assembly(self) -> str:
        """There is none: the program itself."""
        return self.text


class Generator:
    """The code generator. It emits no objects, so that modules of this kind cannot be saved."""

    def lower(self, func: PrimFunc, target: Target) -> Program:
        outputs = set(func.outputs)
        params = tuple(ParamInfo(p.name, str(p.dtype), _shape(p), p in outputs) for p in func.params)
        if flop_count(func) > target.attribute("steps"):
            raise BuildError(f"{func.name} takes more than the {target.attribute('steps')} steps allowed")
        return Program(func.name, script(func), params, (), func=func)

    def load(self, lowered: Lowered, target: Target) -> Interpreted:
        if not isinstance(lowered, Program):
            raise BuildError(f"{lowered.name} was not lowered for pyref")
        return Interpreted(lowered, target)


generator = Generator()


def _arrays(params: Sequence[Buffer], addresses: Sequence[int]) -> list[np.ndarray[Any, Any]]:
    arrays = []
    for p, address in zip(params, addresses, strict=True):
        dtype, shape = numpy_dtype(str(p.dtype)), _shape(p)
        block = (ctypes.c_char * (int(np.prod(shape)) * dtype.itemsize)).from_address(address)
        arrays.append(np.ndarray(shape, dtype, memoryview(block)))
    return arrays


def _shape(p: Buffer) -> tuple[int, ...]:
    sizes = tuple(extent.const for extent in p.shape)
    if any(size is None for size in sizes):
        raise BuildError(f"{p.name}: sizes must be known when a program is built for pyref")
    return tuple(size or 0 for size in sizes)
