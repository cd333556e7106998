"""Programs that make something ahead of their calls, as two."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest

import tilewright as tw
from tilewright import te
from tilewright.compiler import interpret
from tilewright.compiler.codegen.errors import LoweringError
from tilewright.compiler.ir import PrimFunc, parse_script
from tilewright.compiler.passes import lowering, split_ahead
from tilewright.compiler.schedule import Schedule
from tilewright.compiler.target import Target

TARGET = Target.parse("llvm -mcpu=x86-64-v3")


def product(m: int = 6, n: int = 10, k: int = 3) -> PrimFunc:
    a, w = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="W", constant=True)
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * w[r, j], axis=r), name="C")
    return te.create_prim_func([a, w, c], name="product")


def under_a_tile(func: PrimFunc, *, overlap: int = 0) -> Schedule:
    """Tiles of rows and columns; the weights of a tile of columns are copied under both."""
    sch = Schedule(func)
    c = sch.get_block("C")
    copy = sch.cache_read(c, 1, "local", order=[1, 0])
    i, j, _ = sch.get_loops(c)
    i0, i1 = sch.split(i, [None, 4])
    j0, j1 = sch.split(j, [None, 4], overlap=overlap)
    sch.reorder(i0, j0, i1, j1)
    sch.compute_at(copy, j0)
    sch.compute_ahead(copy)
    return sch


MASKED = """\
# before the calls
def product_pack(W: constant(float32[3, 10])):
    W_local = alloc(float32[3, 4, 3])
    for j_0 in range(3):
        for W_local_0_1 in range(3):
            for W_local_1_1 in range(4):
                with block('W_local', ahead=1, free=1):
                    if j_0 * 4 + W_local_1_1 < 10:
                        W_local[j_0, W_local_1_1, W_local_0_1] = W[W_local_0_1, j_0 * 4 + W_local_1_1]

# at each call
def product(A: float32[6, 3], W: constant(float32[3, 10]), C: float32[6, 10]):
    W_local = alloc(float32[3, 4, 3])
    for i_0 in range(2):
        for j_0 in range(3):
            for i_1 in range(4):
                for j_1 in range(4):
                    with block('C_init'):
                        if i_0 * 4 + i_1 < 6 and j_0 * 4 + j_1 < 10:
                            C[i_0 * 4 + i_1, j_0 * 4 + j_1] = 0.0
                    for k in range(3):
                        if i_0 * 4 + i_1 < 6 and j_0 * 4 + j_1 < 10:
                            C[i_0 * 4 + i_1, j_0 * 4 + j_1] += A[i_0 * 4 + i_1, k] * W_local[j_0, j_1, k]
"""


def test_each_tile_of_columns_is_packed_once_whatever_the_rows() -> None:
    assert tw.dump(under_a_tile(product()), TARGET).endswith("\n" + MASKED)


def test_tiles_that_move_back_have_panels_of_their_own() -> None:
    kernel, pack = split_ahead(lowering(TARGET).run(under_a_tile(product(), overlap=1).func))
    assert pack is not None
    (buffer,) = pack.allocs
    assert ([p.const for p in buffer.shape], buffer.constant, kernel.allocs) == ([3, 4, 3], True, (buffer,))
    assert "W[W_local_0_1, min(j_0 * 4, 6) + W_local_1_1]" in str(pack)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("count", [2, 3])
def test_loops_that_were_fused_make_no_panel_twice(order: tuple[int, int], count: int) -> None:
    sch = Schedule(product(8, 12, 3))
    c = sch.get_block("C")
    copy = sch.cache_read(c, 1, "local")
    i, j, _ = sch.get_loops(c)
    i0, i1 = sch.split(i, [None, 2])
    j0, j1, j2 = sch.split(j, [None, 2, 2])
    outer = [(i0, j0)[n] for n in order]
    sch.reorder(*outer, j1, i1, j2)
    sch.compute_at(copy, j1)
    sch.compute_ahead(copy)
    sch.fuse(*[*outer, j1][:count])
    flat = lowering(TARGET).run(sch.func)
    _, pack = split_ahead(flat)
    assert pack is not None
    assert prod(p.const or 0 for p in pack.allocs[0].shape) == 36
    (path, _), *_ = pack.blocks()
    assert prod(f.var.extent.const or 0 for f in path) == 36
    arrays = interpret.random_inputs(sch.original, 0)
    want = interpret.expected(sch.original, arrays)
    tw.build(sch)(*arrays)
    assert interpret.check(want, arrays).ok


def test_a_program_without_such_is_one() -> None:
    func = lowering(TARGET).run(product())
    assert split_ahead(func) == (func, None)


def test_rows_that_were_aligned_stay_so_behind_the_tiles() -> None:
    sch = under_a_tile(product())
    copy = sch.get_block("W_local")
    sch.storage_align(copy, 0, 0, 8, 0)
    _, pack = split_ahead(lowering(TARGET).run(sch.func))
    assert pack is not None
    assert [[p.const for p in b.shape] for b in pack.allocs] == [[3, 4, 8]]


def test_a_buffer_that_a_later_step_put_into_registers_is_refused() -> None:
    sch = under_a_tile(product())
    sch.set_scope(sch.get_block("W_local"), 0, "register")
    with pytest.raises(
        LoweringError,
        match=r"^check_ahead: W_local is in registers, which cannot be made ahead of the calls\n",
    ):
        lowering(TARGET).run(sch.func)


def test_a_program_that_claims_to_make_a_calls_data_ahead_is_refused() -> None:
    text = str(under_a_tile(product()).func).replace("constant(float32[3, 10])", "float32[3, 10]")
    with pytest.raises(
        LoweringError, match=r"^check_ahead: W_local is made ahead of the calls, which tell W\n"
    ):
        lowering(TARGET).run(parse_script(text, check=False))


def test_a_program_that_claims_to_make_its_output_ahead_is_refused() -> None:
    func = product()
    blocks = func.rewrite(lambda s: replace(s, annotations=(("ahead", 1),)) if hasattr(s, "iters") else s)
    with pytest.raises(
        LoweringError, match=r"^check_ahead: C is an output, which cannot be made ahead of the calls\n"
    ):
        lowering(TARGET).run(blocks)


def test_what_a_size_moves_is_not_made_ahead() -> None:
    n = te.var("n")
    a, w = te.placeholder((n, 8), name="A"), te.placeholder((8,), name="W", constant=True)
    func = te.create_prim_func([a, w, te.compute((n, 8), lambda i, j: a[i, j] * w[j], name="B")], name="rows")
    sch = Schedule(func)
    b = sch.get_block("B")
    copy = sch.cache_read(b, 1, "local")
    i, j = sch.get_loops(b)
    both = sch.fuse(i, j)
    first, _ = sch.split(both, [None, 8])
    sch.compute_ahead(copy)
    text = tw.dump(sch, TARGET)
    assert "# before the calls\n" in text
    assert first.var.extent.const is None
