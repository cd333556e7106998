"""Programs run in every way there is: both modes of the interpreter, native code of the program as it stands,
and of its default schedule."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright.compiler import interpret, te
from tilewright.compiler.build import build
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.schedule import Schedule

sys.path.insert(0, str(Path(__file__).parent))

Array = np.ndarray[Any, Any]


def _outputs(func: PrimFunc, run: Callable[[list[Array]], Any], inputs: list[Array]) -> list[Array]:
    left = iter(inputs)
    arrays = [interpret.poisoned(p) if p in func.outputs else next(left).copy() for p in func.params]
    run(arrays)
    return [a for p, a in zip(func.params, arrays, strict=True) if p in func.outputs]


@pytest.fixture(scope="session")
def everywhere() -> Callable[..., list[Array]]:
    """`everywhere(tensors, *inputs)`: the outputs of the program over the tensors (or of a PrimFunc), after a
    check that every way to run it gives them: exactly for integers and booleans, within the tolerance of the
    reference for floats."""

    def run(params: list[te.Tensor] | PrimFunc, *inputs: Array) -> list[Array]:
        func = params if isinstance(params, PrimFunc) else te.create_prim_func(params, name="f")
        ways = {
            "scalar": lambda arrays: interpret.run(func, arrays),
            "as it stands": lambda arrays: build(Schedule(func))(*arrays),
            "default": lambda arrays: build(func)(*arrays),
        }
        got = {name: _outputs(func, way, list(inputs)) for name, way in ways.items()}
        left = iter(inputs)
        arrays = [interpret.poisoned(p) if p in func.outputs else next(left) for p in func.params]
        expected = interpret.expected(func, arrays)
        for name, outputs in got.items():
            made = iter(outputs)
            full = [next(made) if p in func.outputs else a for p, a in zip(func.params, arrays, strict=True)]
            result = interpret.check(expected, full)
            assert result.ok, (name, result.message)
        return got["default"]

    return run
