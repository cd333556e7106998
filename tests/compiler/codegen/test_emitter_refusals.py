"""What cannot become instructions is refused, by the whole text."""

import pickle
from collections.abc import Callable
from dataclasses import replace

import pytest

from tilewright.compiler import te
from tilewright.compiler.arith import Var, poly
from tilewright.compiler.codegen.errors import BuildError, LoweringError
from tilewright.compiler.codegen.lower import lower
from tilewright.compiler.ir import (
    FLOAT32,
    Binary,
    Block,
    Buffer,
    Const,
    For,
    IterKind,
    Load,
    LoopKind,
    PrimFunc,
)
from tilewright.compiler.schedule import Schedule
from tilewright.compiler.target import Target


def sums() -> PrimFunc:
    """B[i] = sum of a row of A, then C = 2 B."""
    a = te.placeholder((8, 16), "float32", name="A")
    k = te.reduce_axis((0, 16), name="k")
    b = te.compute((8,), lambda i: te.sum(a[i, k], axis=k), name="B")
    return te.create_prim_func([a, te.compute((8,), lambda i: b[i] * 2.0, name="C")], name="sums")


def reason_of(func: PrimFunc, target: Target) -> str:
    with pytest.raises(BuildError) as caught:
        lower(func, target)
    return str(caught.value).split("\n")[0]


def test_an_error_marks_the_loop_and_survives_pickling(host: Target) -> None:
    sch = Schedule(sums())
    sch.set_scope(sch.get_block("B"), 0, "register")
    with pytest.raises(LoweringError) as caught:
        lower(sch.func, host)
    text = (
        "check_registers: register buffer B is indexed by loop 'i' in 'B_init'; "
        "unroll that loop, or move all that uses the buffer inside of it\n"
        "  def sums(A: float32[8, 16], C: float32[8]):\n"
        "      B = alloc(float32[8], 'register')\n"
        "      for i in range(8):\n"
        "      ^^^^^^^^^^^^^^^^^^ this loop\n"
        "          with block('B_init'):\n"
        "              B[i] = 0.0\n"
        "          for k in range(16):\n"
        "              B[i] += A[i, k]\n"
        "      for i in range(8):\n"
        "          C[i] = B[i] * 2.0"
    )
    again = pickle.loads(pickle.dumps(caught.value))
    without_line = [line for line in str(caught.value).split("\n") if not line.startswith("  at ")]
    assert ("\n".join(without_line), str(again)) == (text, str(caught.value))


def test_open_knobs_are_refused(host: Target) -> None:
    sch = Schedule(sums())
    (i,) = sch.get_loops(sch.get_block("C"))
    sch.split(i, [None, sch.sample_categorical([1, 2, 4], name="f")])
    assert reason_of(sch.func, host) == (
        "check_concrete: loop 'i_0' runs ceildiv(8, f) times: apply the trace with a value for each knob"
    )


def test_an_overlapped_tile_inside_of_a_reduction_is_refused(host: Target) -> None:
    """No schedule makes this: the loop of the reduction is put outside by hand."""
    sch = Schedule(sums())
    i, _ = sch.get_loops(sch.get_block("B"))
    sch.split(i, [None, 3], overlap=1)
    path, block = sch.func.block("B")
    i0, i1, k = path
    swapped = replace(k, body=(replace(i0, body=(replace(i1, body=(block,)),)),))
    func = sch.func.rewrite(lambda s: swapped if isinstance(s, For) and s.var is i0.var else s)
    assert reason_of(func, host) == (
        "check_overlap: loop 'i_0' moves an overlapped tile, whose work is done twice, but 'B' goes on from "
        "what B held before; put the init inside of the loop, or mask the tail"
    )


def test_a_loop_that_repeats_a_reduction_is_refused(host: Target) -> None:
    """for j: for k: C[0] += A[k], with the init before both."""
    j, k = Var("j", 3), Var("k", 8)
    a, c, at = Buffer("A", (poly(8),), FLOAT32), Buffer("C", (poly(1),), FLOAT32), (poly(0),)
    init = Block("C_init", (), (), (), c, at, Const(0.0, FLOAT32))
    kinds = (IterKind.SPATIAL, IterKind.REDUCE)
    add = Binary("add", Load(c, at), Load(a, (poly(k),)))
    step = Block("C", (j, k), kinds, (poly(j), poly(k)), c, at, add)
    assert reason_of(PrimFunc("f", (a, c), (), (init, For(j, (For(k, (step,)),)))), host) == (
        "check_steps: loop 'j' repeats the steps of 'C'; "
        "put the init inside of the loop, or the reduction outside"
    )


def flat(
    body: Callable[[Buffer, Buffer, Var], tuple[Block | For, ...]], kind: LoopKind = LoopKind.SERIAL
) -> PrimFunc:
    """A loop of 8 over blocks that read A and write B."""
    a, b, i = Buffer("A", (poly(8),), FLOAT32), Buffer("B", (poly(8),), FLOAT32), Var("i", 8)
    return PrimFunc("flat", (a, b), (), (For(i, body(a, b, i), kind),))


def test_lanes_that_store_to_one_element_are_refused(host: Target) -> None:
    def body(a: Buffer, b: Buffer, i: Var) -> tuple[Block | For, ...]:
        return (Block("B", (i,), (IterKind.SPATIAL,), (poly(i),), b, (poly(0),), Load(a, (poly(i),))),)

    assert reason_of(flat(body, LoopKind.VECTORIZED), host) == (
        "check_vectors: all lanes of loop 'i' store to one element of B"
    )


def test_a_reduction_over_lanes_is_refused(host: Target) -> None:
    def body(a: Buffer, b: Buffer, i: Var) -> tuple[Block | For, ...]:
        return (Block("B", (i,), (IterKind.REDUCE,), (poly(i),), b, (poly(0),), Load(a, (poly(i),))),)

    assert reason_of(flat(body, LoopKind.VECTORIZED), host) == (
        "check_vectors: loop 'i' carries a reduction into B and cannot be a vector loop"
    )


def test_a_vector_loop_inside_of_another_one_is_refused(host: Target) -> None:
    def body(a: Buffer, b: Buffer, i: Var) -> tuple[Block | For, ...]:
        j = Var("j", 4)
        block = Block(
            "B", (i, j), (IterKind.SPATIAL,) * 2, (poly(i), poly(j)), b, (poly(i),), Load(a, (poly(j),))
        )
        return (For(j, (block,), LoopKind.VECTORIZED),)

    assert reason_of(flat(body, LoopKind.VECTORIZED), host) == (
        "check_vectors: loop 'j' is a vector loop inside of 'i', which is one already"
    )


def test_an_intermediate_that_nothing_has_written_is_refused(host: Target) -> None:
    i, t, b = Var("i", 8), Buffer("T", (poly(8),), FLOAT32), Buffer("B", (poly(8),), FLOAT32)
    block = Block("B", (i,), (IterKind.SPATIAL,), (poly(i),), b, (poly(i),), Load(t, (poly(i),)))
    assert reason_of(PrimFunc("f", (b,), (t,), (For(i, (block,)),)), host) == (
        "check_reads: 'B' reads T, which nothing has written yet"
    )


def test_a_register_element_without_a_value_is_refused(host: Target) -> None:
    t, b = Buffer("T", (poly(2),), FLOAT32, "register"), Buffer("B", (poly(1),), FLOAT32)
    write = Block("T", (), (), (), t, (poly(0),), Const(1.0, FLOAT32))
    read = Block("B", (), (), (), b, (poly(0),), Load(t, (poly(1),)))
    assert reason_of(PrimFunc("f", (b,), (t,), (write, read)), host) == (
        "emit: element 1 of register buffer T is read where it has no value yet"
    )


def test_a_parameter_in_registers_is_refused(host: Target) -> None:
    b = Buffer("B", (poly(1),), FLOAT32, "register")
    write = Block("B", (), (), (), b, (poly(0),), Const(1.0, FLOAT32))
    assert reason_of(PrimFunc("f", (b,), (), (write,)), host) == (
        "check_registers: parameter B cannot be in registers"
    )


def test_a_register_buffer_of_any_size_is_not_unrolled(host: Target) -> None:
    a = te.placeholder((70000,), "float32", name="A")
    b = te.compute((70000,), lambda i: a[i] + 1.0, name="B")
    sch = Schedule(te.create_prim_func([a, te.compute((70000,), lambda i: b[i] * 2.0, name="C")]))
    sch.set_scope(sch.get_block("B"), 0, "register")
    assert reason_of(sch.func, host) == (
        "check_registers: register buffer B holds 70000 elements where it is used; at most 65536 are allowed"
    )
