"""flip_sign and convert_read: what they make of a sum of products, and what they refuse."""

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.compiler import interpret, te
from tilewright.compiler.ir import PrimFunc, parse_script, script
from tilewright.compiler.schedule import Schedule

from .refusing import reason_of

Steps = Callable[[Schedule], object]


def matmul(left: str, right: str, wide: str = "int32") -> PrimFunc:
    a, b = te.placeholder((3, 5), left, name="A"), te.placeholder((5, 4), right, name="B")
    k = te.reduce_axis((0, 5), name="k")

    def element(i: te.Index, j: te.Index) -> te.Value:
        return te.sum(te.cast(a[i, k], wide) * te.cast(b[k, j], wide), axis=k)

    return te.create_prim_func([a, b, te.compute((3, 4), element, name="C")], name="f")


def flip_the_left_factor(s: Schedule) -> None:
    s.flip_sign(s.get_block("C"), 0)


def flip_and_tile(s: Schedule) -> None:
    """The excess is made at each call, the difference taken in the tile."""
    _, finish = s.flip_sign(s.get_block("C"), 1)
    i, j, k = s.get_loops(s.get_block("C"))
    i0, i1 = s.split(i, [None, 2])
    s.reorder(i0, j, k, i1)
    s.reverse_compute_at(finish, i0)


def convert_both_factors(s: Schedule) -> None:
    for slot in (0, 1):
        s.convert_read(s.get_block("C"), slot, "int16")


def convert_in_the_tile(s: Schedule) -> None:
    copy = s.convert_read(s.get_block("C"), 0, "int32")
    s.compute_at(copy, s.get_loops(s.get_block("C"))[0])


@pytest.mark.parametrize(
    "steps",
    [flip_the_left_factor, flip_and_tile, convert_both_factors, convert_in_the_tile],
    ids=lambda s: s.__name__,
)
def test_another_form_of_a_factor_keeps_the_meaning(
    steps: Steps, keeps_its_meaning: Callable[[PrimFunc, Steps], None]
) -> None:
    keeps_its_meaning(matmul("int8", "uint8"), steps)


def test_a_flipped_factor_is_put_right_at_the_end() -> None:
    sch = Schedule(matmul("int8", "int8"))
    excess, finish = sch.flip_sign(sch.get_block("C"), 0)
    assert [excess.name, finish.name] == ["C_excess", "C_finish"]
    assert [line.strip() for line in script(sch.func).splitlines() if " = " in line or " += " in line] == [
        "C_excess = alloc(int32[4])",
        "C_flipped = alloc(int32[3, 4])",
        "C_excess[j] = 0",
        "C_excess[j] += int32(uint8(128)) * int32(B[k, j])",
        "C_flipped[i, j] = 0",
        "C_flipped[i, j] += int32(uint8(A[i, k]) ^ 128) * int32(B[k, j])",
        "C[i, j] = C_flipped[i, j] - C_excess[j]",
    ]
    assert script(parse_script(script(sch.func))) == script(sch.func)


@pytest.mark.parametrize("slot", [0, 1])
@pytest.mark.parametrize(("left", "right"), [("int8", "int8"), ("uint8", "int8"), ("uint8", "uint8")])
def test_a_flipped_sum_is_the_same(left: str, right: str, slot: int) -> None:
    func = matmul(left, right)
    sch = Schedule(func)
    sch.flip_sign(sch.get_block("C"), slot)
    want, got = interpret.random_inputs(func, 3), interpret.random_inputs(func, 3)
    interpret.run(func, want)
    interpret.run(sch.func, got)
    np.testing.assert_array_equal(got[2], want[2])
    replayed = Schedule(func).trace.__class__.from_json(sch.trace.to_json()).apply(func)
    assert script(replayed.func) == script(sch.func)


def test_what_is_no_such_sum_is_not_flipped() -> None:
    sch = Schedule(matmul("int8", "int8"))
    c = sch.get_block("C")
    assert reason_of(lambda: sch.flip_sign(c, 2)) == (
        "flip_sign: 'C' has no read buffer 2; it reads 0: A, 1: B"
    )
    sch.split(sch.get_loops(c)[0], [None, 2])
    assert reason_of(lambda: sch.flip_sign(c, 0)).endswith(
        "do this before its loops are split, fused or moved"
    )
    wide = Schedule(matmul("int16", "int16"))
    assert reason_of(lambda: wide.flip_sign(wide.get_block("C"), 0)) == (
        "flip_sign: A holds int16; int8 becomes uint8, and uint8 int8"
    )
    floats = Schedule(matmul("float16", "float16", "float32"))
    assert reason_of(lambda: floats.flip_sign(floats.get_block("C"), 0)) == (
        "flip_sign: 'C' does not add up products of two reads in int32"
    )


def test_a_conversion_leaves_the_loops() -> None:
    sch = Schedule(matmul("float16", "float16", "float32"))
    made = sch.convert_read(sch.get_block("C"), 0, "float32")
    assert made.name == "A_float32"
    lines = [line.strip() for line in script(sch.func).splitlines()]
    assert "C[i, j] += A_float32[i, k] * float32(B[k, j])" in lines
    assert "A_float32[A_float32_0, A_float32_1] = float32(A[A_float32_0, A_float32_1])" in lines


@pytest.mark.parametrize(
    ("dtype", "wide", "through"),
    [("int8", "int32", "int16"), ("uint8", "int32", "int16"), ("bfloat16", "float32", "float32")],
)
def test_a_converted_sum_is_the_same(dtype: str, wide: str, through: str) -> None:
    func = matmul(dtype, dtype, wide)
    sch = Schedule(func)
    for slot in (0, 1):
        sch.convert_read(sch.get_block("C"), slot, through)
    want, got = interpret.random_inputs(func, 3), interpret.random_inputs(func, 3)
    interpret.run(func, want)
    interpret.run(sch.func, got)
    np.testing.assert_array_equal(got[2], want[2])


def test_a_conversion_that_loses_values_is_refused() -> None:
    sch = Schedule(matmul("uint8", "uint8"))
    c = sch.get_block("C")
    assert reason_of(lambda: sch.convert_read(c, 0, "int8")) == (
        "convert_read: A holds uint8, of which int8 is no wider dtype"
    )
    assert reason_of(lambda: sch.convert_read(c, 0, "int64")) == (
        "convert_read: 'C' converts A to int32, which does not hold int64"
    )
    assert reason_of(lambda: sch.convert_read(c, 0, "no")).startswith("convert_read: unknown dtype 'no'")
    plain = te.placeholder((4,), "int8", name="A")
    once = Schedule(te.create_prim_func([plain, te.compute((4,), lambda i: plain[i] + plain[i], name="B")]))
    assert reason_of(lambda: once.convert_read(once.get_block("B"), 0, "int16")) == (
        "convert_read: 'B' does not convert A wherever it reads it"
    )


def test_the_reads_of_an_intrinsic_stay_what_it_says() -> None:
    a, b = te.placeholder((16, 4), "uint8", name="A"), te.placeholder((16, 4), "int8", name="B")
    k = te.reduce_axis((0, 4), name="k")

    def element(i: te.Index) -> te.Value:
        return te.sum(te.cast(a[i, k], "int32") * te.cast(b[i, k], "int32"), axis=k)

    sch = Schedule(te.create_prim_func([a, b, te.compute((16,), element, name="C")], name="f"))
    c = sch.get_block("C")
    sch.decompose_reduction(c, sch.get_loops(c)[0])
    sch.tensorize(sch.get_loops(c)[0], "dot_16x4_u8i8i32")
    assert reason_of(lambda: sch.convert_read(c, 0, "int16")) == (
        "convert_read: 'C' belongs to the unit 'C_o', which is taken whole"
    )
