"""Calling a compiled kernel with NumPy arrays."""

import gc
import threading
import weakref
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilewright.compiler.codegen.llvm.jit import compile_ir
from tilewright.compiler.runtime import (
    ArgumentTypeError,
    ArgumentValueError,
    Function,
    ParamInfo,
    SourceInfo,
    WorkspaceInfo,
)
from tilewright.compiler.target import Target

TARGET = Target.parse("llvm")

ADD = """\
define void @add(ptr %A, ptr %B, ptr %C) {
  %a = load <6 x float>, ptr %A, align 4
  %b = load <6 x float>, ptr %B, align 4
  %c = fadd <6 x float> %a, %b
  store <6 x float> %c, ptr %C, align 4
  ret void
}
"""
ADD_PARAMS = (
    ParamInfo("A", "float32", (2, 3), is_output=False),
    ParamInfo("B", "float32", (2, 3), is_output=False),
    ParamInfo("C", "float32", (2, 3), is_output=True),
)

COPY_BYTES = """\
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define void @copy(ptr %A, ptr %B) {{
  call void @llvm.memcpy.p0.p0.i64(ptr %B, ptr %A, i64 {count}, i1 false)
  ret void
}}
"""

# Writes the addresses of its workspaces, and what the first one held before, and marks it.
WORK = """\
define void @work(ptr %out, ptr %w0, ptr %w1) {
  %a0 = ptrtoint ptr %w0 to i64
  %a1 = ptrtoint ptr %w1 to i64
  store i64 %a0, ptr %out, align 8
  %p1 = getelementptr i64, ptr %out, i64 1
  store i64 %a1, ptr %p1, align 8
  ret void
}
"""


def add_module() -> Function:
    return Function("add", ADD_PARAMS, (), compile_ir(ADD, TARGET, ["add"]))


def copy_module(dtype: str, shape: tuple[int, ...], count: int) -> Function:
    params = (ParamInfo("A", dtype, shape, is_output=False), ParamInfo("B", dtype, shape, is_output=True))
    return Function("copy", params, (), compile_ir(COPY_BYTES.format(count=count), TARGET, ["copy"]))


def work_module() -> Function:
    params = (ParamInfo("out", "int64", (2,), is_output=True),)
    return Function(
        "work", params, (WorkspaceInfo(100), WorkspaceInfo(4096)), compile_ir(WORK, TARGET, ["work"])
    )


def arrays() -> tuple[np.ndarray[Any, Any], ...]:
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    return a, a * 10, np.full((2, 3), np.nan, np.float32)


def test_a_call_writes_its_output_in_place() -> None:
    a, b, c = arrays()
    add_module()(a, b, c)
    np.testing.assert_array_equal(c, a + b)


def test_one_array_may_be_two_inputs() -> None:
    a, _, c = arrays()
    add_module()(a, a, c)
    np.testing.assert_array_equal(c, a + a)


def test_read_only_inputs_are_accepted() -> None:
    a, b, c = arrays()
    a.flags.writeable = False
    add_module()(a, b, c)
    np.testing.assert_array_equal(c, a + b)


def test_a_part_of_an_array_that_has_no_gaps_is_accepted() -> None:
    block = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    add_module()(block[0], block[1], block[2])
    np.testing.assert_array_equal(block[2], block[0] + block[1])


def test_a_memory_map_is_accepted(tmp_path: Path) -> None:
    a, b, _ = arrays()
    c = np.memmap(tmp_path / "c", np.float32, "w+", shape=(2, 3))
    add_module()(a, b, c)
    np.testing.assert_array_equal(c, a + b)


@pytest.mark.parametrize(
    ("dtype", "array"),
    [
        ("bool", np.array([True, False, True, True])),
        ("int8", np.array([-128, 127, 0, 1], np.int8)),
        ("uint16", np.array([0, 1, 65535, 7], np.uint16)),
        ("int64", np.array([-(2**63), 1, 2, 3], np.int64)),
        ("float16", np.array([1, 2, 3, 65504], np.float16)),
        ("bfloat16", np.array([1, 2, 3, 1 / 1024], ml_dtypes.bfloat16)),
        ("float64", np.array([1, 2, 3, 1e300])),
    ],
)
def test_every_dtype_is_passed_under_its_own_name(dtype: str, array: np.ndarray[Any, Any]) -> None:
    out = np.zeros_like(array)
    copy_module(dtype, (4,), array.nbytes)(array, out)
    np.testing.assert_array_equal(out, array)


def test_an_array_without_dimensions_is_passed() -> None:
    out = np.zeros((), np.float32)
    copy_module("float32", (), 4)(np.array(3.5, np.float32), out)
    assert out[()] == 3.5


def test_an_array_without_elements_is_passed() -> None:
    empty = np.zeros((0, 3), np.float32)
    copy_module("float32", (0, 3), 0)(empty, empty)
    assert empty.shape == (0, 3)


def test_a_refused_call_writes_nothing() -> None:
    a, b, c = arrays()
    with pytest.raises(ArgumentTypeError):
        add_module()(a, b.astype(np.float64), c)
    assert np.isnan(c).all()


def test_workspaces_are_aligned_and_used_again() -> None:
    module = work_module()
    first, second = np.zeros(2, np.int64), np.zeros(2, np.int64)
    module(first)
    module(second)
    assert ((first % 64).tolist(), first.tolist()) == ([0, 0], second.tolist())


def test_workspaces_do_not_overlap() -> None:
    out = np.zeros(2, np.int64)
    work_module()(out)
    low, high = sorted(out.tolist())
    assert high - low >= 100


def test_each_thread_has_workspaces_of_its_own() -> None:
    module = work_module()
    outs = [np.zeros(2, np.int64) for _ in range(2)]
    together = threading.Barrier(2)

    def call(out: np.ndarray[Any, Any]) -> None:
        module(out)
        together.wait()

    threads = [threading.Thread(target=call, args=(out,)) for out in outs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not set(outs[0].tolist()) & set(outs[1].tolist())


def test_a_bound_call_runs_on_its_arrays() -> None:
    a, b, c = arrays()
    bound = add_module().bind(a, b, c)
    a += 1
    bound()
    np.testing.assert_array_equal(c, a + b)


def test_a_bound_call_keeps_its_arrays_alive() -> None:
    a, b, c = arrays()
    alive = weakref.ref(a)
    bound = add_module().bind(a, b, c)
    del a
    gc.collect()
    assert alive() is not None
    bound()
    del bound
    gc.collect()
    assert alive() is None


def test_a_bound_call_has_workspaces_of_its_own() -> None:
    module = work_module()
    direct, bound = np.zeros(2, np.int64), np.zeros(2, np.int64)
    module(direct)
    module.bind(bound)()
    assert not set(direct.tolist()) & set(bound.tolist())


def test_binding_checks_the_arrays() -> None:
    a, b, _ = arrays()
    with pytest.raises(ArgumentValueError, match="is an output and shares memory"):
        add_module().bind(a, b, b)


def test_a_module_says_what_it_is() -> None:
    source = SourceInfo("default", "no schedule is stored")
    module = Function(
        "add",
        ADD_PARAMS,
        (),
        compile_ir(ADD, TARGET, ["add"]),
        script="def add(): ...",
        schedule_source=source,
    )
    assert (
        *(module.name, module.script, module.schedule_source, module.target),
        *(module.source(), "add:" in module.assembly(), repr(module)),
    ) == (
        *("add", "def add(): ...", source, TARGET),
        *(ADD, True),
        "Function(add(A: float32[2, 3], B: float32[2, 3], C: float32[2, 3] out), default schedule, "
        f"{TARGET})",
    )
