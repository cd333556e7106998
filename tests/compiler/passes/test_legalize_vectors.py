"""LegalizeVectors: vector loops as wide as the machine."""

import pytest

from tilewright.compiler import te
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.passes.legalize_vectors import LegalizeVectors
from tilewright.compiler.schedule import Schedule


def copy(n: int, dtype: str = "float32") -> PrimFunc:
    """B = A over n, all of it one vector loop."""
    a = te.placeholder((n,), dtype, name="A")
    sch = Schedule(te.create_prim_func([a, te.compute((n,), lambda i: a[i], name="B")], name="copy"))
    sch.vectorize(*sch.get_loops(sch.get_block("B")))
    return sch.func


def loops(func: PrimFunc) -> list[str]:
    return [f"{f.kind} {f.var.extent}" for path, _ in func.blocks() for f in path]


def test_a_loop_as_wide_as_a_register_stays() -> None:
    func = copy(16)
    assert LegalizeVectors(64).run(func).body == func.body


def test_a_wider_loop_becomes_unrolled_vectors_with_a_masked_tail() -> None:
    assert str(LegalizeVectors(64).run(copy(40))) == (
        "def copy(A: float32[40], B: float32[40]):\n"
        "    for i_0 in unrolled(3):\n"
        "        for i_1 in vectorized(16):\n"
        "            with block('B', i=spatial(i_0 * 16 + i_1, 40)):\n"
        "                if i_0 * 16 + i_1 < 40:\n"
        "                    B[i] = A[i]\n"
    )


def test_a_narrower_loop_becomes_one_masked_vector() -> None:
    assert str(LegalizeVectors(64).run(copy(13))) == (
        "def copy(A: float32[13], B: float32[13]):\n"
        "    for i_1 in vectorized(16):\n"
        "        with block('B', i=spatial(i_1, 13)):\n"
        "            if i_1 < 13:\n"
        "                B[i] = A[i]\n"
    )


@pytest.mark.parametrize(
    ("n", "dtype", "expected"),
    [
        (24, "float32", ["unrolled 3", "vectorized 8"]),
        (28, "float32", ["unrolled 2", "vectorized 16"]),
        (32, "float64", ["unrolled 4", "vectorized 8"]),
        (64, "int8", ["vectorized 64"]),
        (3, "float32", ["vectorized 4"]),
        (160, "float32", ["unrolled 10", "vectorized 16"]),
        (1000, "float32", ["serial 63", "vectorized 16"]),
    ],
)
def test_the_width_is_the_power_of_two_that_covers_the_extent_best(
    n: int, dtype: str, expected: list[str]
) -> None:
    assert loops(LegalizeVectors(64).run(copy(n, dtype))) == expected


def test_the_widest_element_computed_with_decides() -> None:
    a = te.placeholder((64,), "int8", name="A")
    out = te.compute((64,), lambda i: te.cast(te.cast(a[i], "float64") * 0.5, "int8"), name="B")
    sch = Schedule(te.create_prim_func([a, out]))
    sch.vectorize(*sch.get_loops(sch.get_block("B")))
    assert loops(LegalizeVectors(64).run(sch.func)) == ["unrolled 8", "vectorized 8"]


def test_loops_that_share_a_register_buffer_get_the_same_lanes() -> None:
    a = te.placeholder((16,), "float32", name="A")
    b = te.compute((16,), lambda i: a[i] + 1.0, name="B")
    sch = Schedule(te.create_prim_func([a, te.compute((16,), lambda i: te.cast(b[i], "float64"), name="C")]))
    sch.set_scope(sch.get_block("B"), 0, "register")
    for name in ("B", "C"):
        sch.vectorize(*sch.get_loops(sch.get_block(name)))
    assert loops(LegalizeVectors(64).run(sch.func)) == ["unrolled 2", "vectorized 8"] * 2


def test_a_machine_with_one_lane_gets_serial_loops() -> None:
    assert loops(LegalizeVectors(8).run(copy(6, "float64"))) == ["unrolled 6", "serial 1"]
