"""Programs that the scheduling tests start from, and golden texts."""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import tilewright as tw
from tilewright.compiler import interpret, te
from tilewright.compiler.ir import PrimFunc, parse_script, structural_equal
from tilewright.compiler.schedule import Schedule, Trace

Steps = Callable[[Schedule], object]

GOLDEN = Path(__file__).parents[2] / "golden" / "schedule"


@pytest.fixture
def chain() -> PrimFunc:
    """B = 2 A, C = B + 1: two elementwise blocks over 10 x 6."""
    a = te.placeholder((10, 6), "float32", name="A")
    b = te.compute((10, 6), lambda i, j: a[i, j] * 2, name="B")
    c = te.compute((10, 6), lambda i, j: b[i, j] + 1, name="C")
    return te.create_prim_func([a, c], name="chain")


@pytest.fixture
def matmul() -> PrimFunc:
    """C = A B with a bias and a relu behind it: 10 x 6 x 8."""
    a = te.placeholder((10, 8), "float32", name="A")
    b = te.placeholder((8, 6), "float32", name="B")
    bias = te.placeholder((6,), "float32", name="bias")
    k = te.reduce_axis((0, 8), name="k")
    c = te.compute((10, 6), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    d = te.compute((10, 6), lambda i, j: te.maximum(c[i, j] + bias[j], 0), name="D")
    return te.create_prim_func([a, b, bias, d], name="matmul")


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """Compares a text with tests/golden/schedule/NAME.txt; TILEWRIGHT_UPDATE_GOLDEN=1 writes it instead."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / f"{name}.txt"
        if os.environ.get("TILEWRIGHT_UPDATE_GOLDEN") == "1":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert text == path.read_text()

    return compare


@pytest.fixture
def keeps_its_meaning(golden: Callable[[str, str], None]) -> Callable[[PrimFunc, Steps], None]:
    """Checks steps on a program: the golden text named like them, the same values by the interpreter and by
    machine code, and the same program again from the trace's JSON and from the Python that it prints as."""

    def check(func: PrimFunc, steps: Steps) -> None:
        sch = Schedule(func)
        steps(sch)
        golden(steps.__name__, str(sch) + "\n" + sch.trace.script())
        read = parse_script(str(sch.func))
        assert (structural_equal(read, sch.func), str(read)) == (True, str(sch.func))
        expected = interpret.expected(func, interpret.random_inputs(func, 0))
        runs: list[Callable[..., object]] = [lambda *arrays: interpret.run(sch.func, arrays)]
        # Some steps make registers that only further steps make constant-indexed.
        with suppress(tw.BuildError):
            runs.append(tw.build(sch))
        for run in runs:
            arrays = interpret.random_inputs(func, 0)
            run(*arrays)
            result = interpret.check(expected, arrays)
            assert result.ok, result.message
        read = parse_script(str(sch.func))
        assert (structural_equal(read, sch.func), str(read)) == (True, str(sch.func))
        again = Trace.from_json(json.loads(json.dumps(sch.trace.to_json()))).apply(func)
        assert structural_equal(again.func, sch.func)
        assert again.trace == sch.trace
        written = Schedule(func)
        exec(sch.trace.script(), {"sch": written})
        assert structural_equal(written.func, sch.func)

    return check
