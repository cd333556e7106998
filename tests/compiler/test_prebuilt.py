"""What is compiled in one process runs in another."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tilewright import te
from tilewright.compiler import topi
from tilewright.compiler.build import build
from tilewright.compiler.codegen.errors import BuildError
from tilewright.compiler.interpret import check, expected, random_inputs
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.prebuilt import Prebuilt, can_prebuild, prebuild
from tilewright.compiler.schedule import Schedule
from tilewright.compiler.space import default_schedule
from tilewright.compiler.target import Target
from tilewright.compiler.target.hardware import usable_cores

LLVM = Target.parse("llvm")


def scaled(dtype: str) -> PrimFunc:
    a = te.placeholder((37, 21), dtype, name="A")
    two = te.const(2, dtype)
    return te.create_prim_func([a, te.compute((37, 21), lambda i, j: a[i, j] * two)], name="scaled")


def packed() -> PrimFunc:
    return topi.create({"op": "dense", "m": 9, "n": 40, "k": 17, "bias": True, "constant_weights": True})


@pytest.mark.parametrize(
    "func",
    [*(scaled(dtype) for dtype in ("float32", "float64", "float16", "int8")), packed()],
    ids=["float32", "float64", "float16", "int8", "packed constants"],
)
def test_it_computes_after_pickling_what_a_built_one_does(func: PrimFunc) -> None:
    schedule = default_schedule(func, LLVM)
    there: Prebuilt = pickle.loads(pickle.dumps(prebuild(schedule, LLVM)))
    arrays, others = random_inputs(func, 0), random_inputs(func, 0)
    want = expected(func, arrays)
    there.load()(*arrays)
    build(schedule, LLVM)(*others)
    assert check(want, arrays).ok
    assert all(np.array_equal(a, b) for a, b in zip(arrays, others, strict=True))


def test_its_code_is_that_of_a_built_one() -> None:
    schedule = default_schedule(scaled("float32"), LLVM)
    built = build(schedule, LLVM)
    assert prebuild(schedule, LLVM).load().source() == built.source()


@pytest.mark.skipif(usable_cores() < 2, reason="needs two cores")
def test_a_parallel_kernel_finds_the_threads_of_the_process_that_loads_it(tmp_path: Path) -> None:
    func, two = scaled("float32"), Target.parse("llvm -num-threads=2")
    schedule = Schedule(func)
    schedule.parallel(schedule.get_loops(schedule.get_blocks()[0])[0])
    file = tmp_path / "prebuilt"
    file.write_bytes(pickle.dumps(prebuild(schedule, two)))
    program = (
        "import pickle, sys, numpy as np\n"
        "module = pickle.load(open(sys.argv[1], 'rb')).load()\n"
        "a, b = np.ones((37, 21), np.float32), np.zeros((37, 21), np.float32)\n"
        "module(a, b)\n"
        "print(b.sum())\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(file)], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (f"{37 * 21 * 2.0}\n", "")


def test_a_kind_whose_code_stays_where_it_was_compiled_has_none() -> None:
    c = Target.parse("c")
    assert (can_prebuild(LLVM), can_prebuild(c)) == (True, False)
    with pytest.raises(BuildError) as caught:
        prebuild(default_schedule(scaled("float32"), c), c)
    assert str(caught.value) == "code of the kind 'c' stays in the process that compiled it"


def test_code_for_another_machine_is_not_loaded() -> None:
    riscv = Target.parse("llvm -mtriple=riscv64-linux-gnu")
    with pytest.raises(BuildError) as caught:
        prebuild(default_schedule(scaled("float32"), riscv), riscv).load()
    words = "code for generic-rv64 cannot run on this machine, which lacks riscv64"
    assert str(caught.value) == f"{words}; its assembly and object can be emitted"
