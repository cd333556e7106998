"""Compact: buffers as small as their use."""

from tilewright.compiler import te
from tilewright.compiler.arith import Poly, Var, poly
from tilewright.compiler.ir import (
    FLOAT32,
    Binary,
    Block,
    Buffer,
    Const,
    Expr,
    For,
    IterKind,
    Load,
    LoopKind,
    PrimFunc,
)
from tilewright.compiler.passes.compact import FREE, Compact
from tilewright.compiler.passes.simplify import Simplify
from tilewright.compiler.schedule import Schedule


def compacted(func: PrimFunc) -> PrimFunc:
    return Compact().run(Simplify().run(func))


def test_a_buffer_shrinks_to_what_one_iteration_uses(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    (i,) = sch.get_loops(sch.get_block("C"))
    i0, _ = sch.split(i, [None, 4])
    sch.compute_at(sch.get_block("B"), i0)
    assert str(compacted(sch.func)) == (
        "def chain(A: float32[20], C: float32[20]):\n"
        "    B = alloc(float32[4])\n"
        "    for i_0 in range(5):\n"
        "        for B_i in range(4):\n"
        "            B[B_i] = A[i_0 * 4 + B_i] * 2.0\n"
        "        for i_1 in range(4):\n"
        "            C[i_0 * 4 + i_1] = B[i_1] + 1.0\n"
    )


def test_parameters_keep_their_shape(chain: PrimFunc) -> None:
    assert [p.shape for p in compacted(chain).params] == [p.shape for p in chain.params]


def test_a_tail_may_write_past_the_extent_into_memory_of_its_own(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    (i,) = sch.get_loops(sch.get_block("B"))
    sch.split(i, [None, 8])
    func = compacted(sch.func)
    assert ([b.shape[0].const for b in func.allocs], func.block("B")[1].annotations) == ([24], ((FREE, 1),))


def test_what_an_overlapped_tile_writes_into_shared_memory_stays_masked(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    (i,) = sch.get_loops(sch.get_block("B"))
    sch.split(i, [None, 2, 8], overlap=1)
    assert compacted(sch.func).block("B")[1].annotations == ()


def test_a_window_that_slides_over_what_earlier_iterations_wrote_is_not_shrunk() -> None:
    """for i: { T[i + 1] = A[i]; B[i] = T[i] + T[i + 1] }: T[i] is of the iteration before."""
    i = Var("i", 9)
    a, b = Buffer("A", (poly(9),), FLOAT32), Buffer("B", (poly(9),), FLOAT32)
    t = Buffer("T", (poly(10),), FLOAT32)

    def one(name: str, buffer: Buffer, index: Poly, value: Expr) -> Block:
        return Block(name, (i,), (IterKind.SPATIAL,), (poly(i),), buffer, (index,), value)

    start = Block("start", (), (), (), t, (poly(0),), Const(0.0, FLOAT32))
    slide = Binary("add", Load(t, (poly(i),)), Load(t, (poly(i) + 1,)))
    body = (one("T", t, poly(i) + 1, Load(a, (poly(i),))), one("B", b, poly(i), slide))
    inside = PrimFunc("slide", (a, b), (t,), (For(i, body),))
    outside = PrimFunc("slide", (a, b), (t,), (start, For(i, body)))
    assert [f.allocs[0].shape[0].const for f in map(Compact().run, (inside, outside))] == [10, 10]


def test_what_is_used_under_one_vector_loop_has_an_element_for_each_lane() -> None:
    i = Var("i", 8)
    a, b = Buffer("A", (poly(8),), FLOAT32), Buffer("B", (poly(8),), FLOAT32)
    t, at = Buffer("T", (poly(8),), FLOAT32, "register"), (poly(i),)
    body = tuple(
        Block(x.name, (i,), (IterKind.SPATIAL,), at, x, at, Load(y, at)) for x, y in ((t, a), (b, t))
    )
    func = PrimFunc("copy", (a, b), (t,), (For(i, body, LoopKind.VECTORIZED),))
    assert Compact().run(func).allocs[0].shape[0].const == 8


def test_the_halo_of_a_tile_is_part_of_its_box() -> None:
    a = te.placeholder((34,), "float32", name="A")
    b = te.compute((34,), lambda i: a[i] * 2.0, name="B")
    c = te.compute((32,), lambda i: b[i] + b[i + 2], name="C")
    sch = Schedule(te.create_prim_func([a, c]))
    i0, _ = sch.split(*sch.get_loops(sch.get_block("C")), [None, 8])
    sch.compute_at(sch.get_block("B"), i0)
    assert compacted(sch.func).allocs[0].shape[0].const == 10
