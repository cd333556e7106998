"""Programs of their own: each is run natively, or by QEMU, and says the same as the kernel it is made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright.compiler import interpret, te, topi
from tilewright.compiler.codegen.dims import params_of
from tilewright.compiler.codegen.errors import BuildError
from tilewright.compiler.codegen.llvm.jit import emit_object
from tilewright.compiler.codegen.standalone import Layout, standalone_program
from tilewright.compiler.codegen.standalone.elf import ObjectFile
from tilewright.compiler.codegen.standalone.link import linked
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.schedule import Schedule, ScheduleError
from tilewright.compiler.space import default_schedule, space_of
from tilewright.compiler.target import Target

from .standalone_run import Said, emulator, run, write

TARGETS = {
    "x86_64": "llvm -mcpu=x86-64",
    "aarch64": "llvm -mcpu=cortex-a53",
    "riscv64": "llvm -mcpu=sifive-x280",
}
on_every_architecture = pytest.mark.parametrize(
    "architecture",
    [
        pytest.param(a, marks=pytest.mark.skipif(emulator(a) is None, reason=f"needs qemu-{a}-static"))
        for a in TARGETS
    ],
)
KERNELS: dict[str, dict[str, object]] = {
    "matmul": {"op": "matmul", "m": 13, "n": 70, "k": 37},
    "matmul of int8": {"op": "matmul", "m": 9, "n": 33, "k": 21, "dtype": "int8"},
    "matmul of float16": {"op": "matmul", "m": 9, "n": 33, "k": 21, "dtype": "float16"},
    "matmul of bfloat16": {"op": "matmul", "m": 9, "n": 33, "k": 21, "dtype": "bfloat16"},
    "matmul of float64": {"op": "matmul", "m": 9, "n": 33, "k": 21, "dtype": "float64"},
    "dense": {"op": "dense", "m": 7, "n": 40, "k": 31, "bias": True, "activation": "relu"},
    "softmax": {"op": "softmax", "m": 5, "n": 67},
}


def target(architecture: str) -> Target:
    return Target.parse(TARGETS[architecture])


def data_of(func: PrimFunc, folder: Path, **changed: Any) -> Path:
    """The data file of a workload; `wants` is added to what is expected first."""
    layout = Layout.of(params_of(func))
    arrays = interpret.random_inputs(func, 3)
    want = interpret.expected(func, arrays)
    parts = [(p.offset, a.tobytes()) for p, a in zip(layout.inputs, arrays, strict=True) if p is not None]
    for place, out, tolerance in zip(want.positions, want.outputs, want.tolerances, strict=True):
        there, allowed = layout.expected[place], layout.tolerances[place]
        assert there is not None and allowed is not None
        shifted = out.copy()
        for index, value in changed.get("wants", {}).items():
            shifted[index] = value
        parts += [(there.offset, shifted.tobytes()), (allowed.offset, tolerance.tobytes())]
    return write(folder / "data", parts, changed.get("size", layout.bytes))


def ran(func: PrimFunc, scheduled: PrimFunc, architecture: str, folder: Path, **changed: Any) -> Said:
    runs = emulator(architecture)
    assert runs is not None
    program = standalone_program(scheduled, target(architecture))
    return run(program, data_of(func, folder, **changed), runs, folder)


@on_every_architecture
@pytest.mark.parametrize("name", KERNELS)
def test_a_program_computes_checks_and_times_its_kernel(name: str, architecture: str, tmp_path: Path) -> None:
    func = topi.create(dict(KERNELS[name]))
    said = ran(func, default_schedule(func, target(architecture)).func, architecture, tmp_path)
    assert (said.status, said.bad, said.wrote, said.differs) == (0, 0, -1, -1)
    assert 0.0 <= said.worst <= 1.0
    assert said.first > 0 and len(said.samples) == 2 and min(said.samples) > 0


@on_every_architecture
@pytest.mark.parametrize("name", ["matmul", "softmax"])
@pytest.mark.slow
def test_schedules_of_every_sketch_run_as_programs(name: str, architecture: str, tmp_path: Path) -> None:
    func, parsed, count = topi.create(dict(KERNELS[name])), target(architecture), 0
    for sketch in space_of(func, parsed).sketches:
        for row in sketch.columns.random(64, np.random.default_rng(5))[:3]:
            try:
                said = ran(func, sketch.resolve(row).apply(func).func, architecture, tmp_path)
            except (ScheduleError, BuildError):
                continue
            assert (said.status, said.bad) == (0, 0)
            count += 1
    assert count


def test_the_worst_ratio_is_the_one_that_the_reference_finds(tmp_path: Path) -> None:
    if emulator("x86_64") is None:
        pytest.skip("needs qemu-x86_64-static")
    func, parsed = topi.create(dict(KERNELS["matmul"])), target("x86_64")
    scheduled = default_schedule(func, parsed).func
    arrays = interpret.random_inputs(func, 3)
    want = interpret.expected(func, interpret.random_inputs(func, 3))
    said = ran(func, scheduled, "x86_64", tmp_path)
    from tilewright.compiler.build import build

    build(Schedule(scheduled), target=parsed)(*arrays)
    assert said.worst == interpret.check(want, arrays).worst
    assert (said.got, said.output) == (float(arrays[2].flat[said.index]), 2)
    assert said.want == float(want.outputs[0].flat[said.index])


WRONG = {
    "matmul": [(2, 5), 1e3],
    "matmul of int8": [(2, 5), 7],
    "matmul of float16": [(2, 5), 1e3],
    "matmul of bfloat16": [(2, 5), float("inf")],
    "matmul of float64": [(2, 5), float("nan")],
}


@on_every_architecture
@pytest.mark.parametrize("name", WRONG)
def test_one_wrong_element_is_found_and_named(name: str, architecture: str, tmp_path: Path) -> None:
    func = topi.create(dict(KERNELS[name]))
    index, value = WRONG[name]
    scheduled = default_schedule(func, target(architecture)).func
    said = ran(func, scheduled, architecture, tmp_path, wants={index: value})
    place = int(np.ravel_multi_index(index, [int(p.const or 0) for p in func.params[2].shape]))
    assert (said.status, said.bad, said.output, said.index) == (0, 1, 2, place)
    assert not said.worst <= 1.0
    assert said.want == value or np.isnan(value)


def _constant_and_wrong() -> tuple[PrimFunc, PrimFunc]:
    """A program, and one that computes something else of the same parameters."""
    a = te.placeholder((8,), "int32", name="A")
    right = te.create_prim_func([a, te.compute((8,), lambda i: a[i] + 1, name="B")])
    b = te.placeholder((8,), "int32", name="A")
    return right, te.create_prim_func([b, te.compute((8,), lambda i: b[i] + 2, name="B")])


@on_every_architecture
def test_a_kernel_that_computes_something_else_is_wrong_everywhere(architecture: str, tmp_path: Path) -> None:
    right, wrong = _constant_and_wrong()
    said = ran(right, wrong, architecture, tmp_path)
    assert (said.bad, said.got, said.want) == (8, said.want + 1, said.want)


@on_every_architecture
def test_data_that_is_cut_off_does_not_pass(architecture: str, tmp_path: Path) -> None:
    func, _ = _constant_and_wrong()
    said = ran(func, func, architecture, tmp_path, size=0)
    assert said.status != 0


def test_a_program_that_is_given_too_little_memory_says_so(tmp_path: Path) -> None:
    if emulator("x86_64") != []:
        pytest.skip("an emulator needs memory of its own")
    func = topi.create({"op": "matmul", "m": 1024, "n": 1024, "k": 4})
    program = standalone_program(default_schedule(func, target("x86_64")).func, target("x86_64"))
    said = run(program, data_of(func, tmp_path), ["sh", "-c", 'ulimit -v 8192; exec "$0"'], tmp_path)
    assert said.status != 0


def test_the_same_schedule_gives_the_same_program() -> None:
    func = topi.create(dict(KERNELS["matmul"]))
    for architecture in TARGETS:
        parsed = target(architecture)
        scheduled = default_schedule(func, parsed).func
        assert standalone_program(scheduled, parsed) == standalone_program(scheduled, parsed)


def test_a_program_is_small_and_has_no_segment_that_is_written_and_run() -> None:
    func = topi.create(dict(KERNELS["matmul"]))
    for architecture in TARGETS:
        program = standalone_program(default_schedule(func, target(architecture)).func, target(architecture))
        assert len(program) < 16_000
        count = int.from_bytes(program[56:58], "little")
        rights = [int.from_bytes(program[64 + 56 * n + 4 :][:4], "little") for n in range(count)]
        assert 5 in rights and 7 not in rights


@pytest.mark.parametrize(
    ("described", "reason"),
    [
        ("llvm -num-threads=2", "num-threads=2: a program of its own has one thread"),
        ("c", "a program of its own is made by the kind 'llvm', not by 'c'"),
    ],
)
def test_what_no_program_can_be_made_for_is_refused(described: str, reason: str) -> None:
    func = topi.create(dict(KERNELS["matmul"]))
    with pytest.raises(BuildError, match=reason):
        standalone_program(func, Target.parse(described))


def test_arrays_beyond_the_memory_limit_are_refused() -> None:
    func = topi.create(dict(KERNELS["matmul"]))
    with pytest.raises(BuildError, match=r"its arrays need \d+ bytes, and the limit is 1000"):
        standalone_program(func, target("x86_64"), most_memory=1000)


def test_the_data_file_follows_from_the_parameters_alone() -> None:
    func = topi.create({"op": "dense", "m": 2, "n": 3, "k": 5, "bias": True})
    layout = Layout.of(params_of(func))
    assert [p and (p.offset, p.bytes) for p in layout.inputs] == [(0, 40), (64, 60), (128, 12), None]
    assert [p and (p.offset, p.bytes) for p in layout.expected] == [None, None, None, (192, 48)]
    assert [p and (p.offset, p.bytes) for p in layout.tolerances] == [None, None, None, (256, 48)]
    assert layout.bytes == 320


TEXT = "define void @_start() {\n  ret void\n}\n"


def test_an_object_that_calls_a_library_is_not_linked() -> None:
    calls = "define void @f() {\n  call void @missing()\n  ret void\n}\n"
    text = TEXT + "@missing = external hidden global i8\n" + calls
    code = emit_object(text, Target.parse("llvm -mcpu=cortex-a53"))
    with pytest.raises(BuildError, match="the code calls missing, and a program of its own has no library"):
        linked(code, ("system", b""), "_start")


def test_a_program_begins_somewhere() -> None:
    code = emit_object(TEXT, Target.parse("llvm -mcpu=cortex-a53"))
    with pytest.raises(BuildError, match="the program has no elsewhere"):
        linked(code, ("system", b""), "elsewhere")


def test_a_damaged_object_is_refused_and_not_read_beyond() -> None:
    code = emit_object(TEXT, Target.parse("llvm -mcpu=cortex-a53"))
    with pytest.raises(BuildError, match="no relocatable ELF"):
        ObjectFile.read(b"\x7fELF" + bytes(100))
    for size in range(0, len(code), 7):
        with pytest.raises(BuildError):
            ObjectFile.read(code[:size])
