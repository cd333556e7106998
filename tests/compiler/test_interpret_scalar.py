"""The scalar interpreter: any schedule, exactly in the dtypes of the program."""

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from tilewright.compiler import interpret, te, topi
from tilewright.compiler.arith import Var, poly
from tilewright.compiler.ir import Binary, Block, For, IterKind, Load
from tilewright.compiler.schedule import Schedule


def ran(func, seed=0):
    """The outputs after a run on random inputs."""
    arrays = interpret.random_inputs(func, seed)
    interpret.run(func, arrays)
    return [a for p, a in zip(func.params, arrays, strict=True) if p in func.outputs]


@pytest.fixture
def matmul():
    """Of small integers, so that every order of summation gives the same bits."""
    return topi.create({"op": "matmul", "m": 7, "n": 9, "k": 10, "dtype": "int32"})


def test_a_tiled_reordered_and_decomposed_matmul_computes_the_same(matmul):
    sch = Schedule(matmul)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    i0, i1 = sch.split(i, factors=[None, 4])
    j0, j1 = sch.split(j, factors=[None, 4])
    k0, k1 = sch.split(k, factors=[None, 3])
    sch.reorder(j0, i0, k0, k1, i1, j1)
    sch.unroll(i1)
    sch.vectorize(j1)
    sch.decompose_reduction(block, k0)
    assert np.array_equal(ran(sch.func)[0], ran(matmul)[0])


def test_an_init_runs_once_for_each_element_however_the_loops_are_ordered(matmul):
    sch = Schedule(matmul)
    i, j, k = sch.get_loops(sch.get_block("C"))
    k0, k1 = sch.split(k, factors=[None, 4])
    sch.reorder(k0, i, k1, j)
    assert np.array_equal(ran(sch.func)[0], ran(matmul)[0])


def test_a_cached_and_moved_stage_computes_the_same():
    func = topi.create(
        {"op": "dense", "m": 6, "n": 10, "k": 5, "bias": True, "dtype": "int32", "activation": "relu"}
    )
    sch = Schedule(func)
    block = sch.get_block("dense")
    i, _j, _k = sch.get_loops(block)
    i0, _i1 = sch.split(i, factors=[None, 2])
    sch.reverse_compute_at(sch.get_block("Y"), i0)
    assert np.array_equal(ran(sch.func)[0], ran(func)[0])


def test_programs_with_more_loops_than_python_nests_run():
    shape = (1, 2) * 13
    x = te.placeholder(shape, "int32", name="X")
    func = te.create_prim_func([x, te.compute(shape, lambda *i: x[i] * 3, name="Y")], name="deep")
    arrays = interpret.random_inputs(func, 0)
    interpret.run(func, arrays)
    assert np.array_equal(arrays[1], arrays[0] * 3)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_every_operation_rounds_to_its_dtype(dtype):
    x = te.placeholder((50,), dtype, name="X")
    func = te.create_prim_func([x, te.compute((50,), lambda i: x[i] * x[i] + x[i], name="Y")], name="f")
    arrays = interpret.random_inputs(func, 0)
    interpret.run(func, arrays)
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    assert np.array_equal(arrays[1], (arrays[0] * arrays[0] + arrays[0]).astype(kind))


def test_predicates_and_minima_say_which_instances_exist_and_where():
    # Overlapping tiles of 4 over 10 elements: the last one starts at 6.
    x = te.placeholder((10,), "int32", name="X")
    func = te.create_prim_func([x, te.compute((10,), lambda i: x[i] + 1, name="Y")], name="f")
    sch = Schedule(func)
    sch.split(*sch.get_loops(sch.get_block("Y")), factors=[None, 4], overlap=1)
    arrays = interpret.random_inputs(sch.func, 0)
    interpret.run(sch.func, arrays)
    assert np.array_equal(arrays[1], arrays[0] + 1)


def test_a_guarded_read_never_happens_outside():
    x = te.placeholder((4,), "float32", name="X")
    y = te.compute((6,), lambda i: te.if_then_else(te.all(i >= 1, i < 5), x[i - 1], -1.0), name="Y")
    func = te.create_prim_func([x, y], name="f")
    arrays = [np.arange(4, dtype=np.float32), np.zeros(6, np.float32)]
    interpret.run(func, arrays)
    assert arrays[1].tolist() == [-1, 0, 1, 2, 3, -1]


def _shifted(by):
    """Y[i + by] = X[i] for 4 elements, as no te program would be."""
    x = te.placeholder((4,), "float32", name="X")
    func = te.create_prim_func([x, te.compute((4,), lambda i: x[i], name="Y")], name="f")
    return func.rewrite(lambda s: replace(s, indices=(s.indices[0] + by,)) if isinstance(s, Block) else s)


@pytest.mark.parametrize(("by", "index"), [(1, 4), (-1, -1)])
def test_an_access_outside_of_its_buffer_is_an_error(by, index):
    func = _shifted(by)
    with pytest.raises(interpret.OutOfBounds) as e:
        interpret.run(func, [np.zeros(4, np.float32), np.zeros(4, np.float32)])
    assert str(e.value) == f"index {index} in dimension 0 of 'Y', which has the extent 4"


def test_a_workspace_that_is_not_written_is_seen():
    x = te.placeholder((4,), "float32", name="X")
    t = te.compute((4,), lambda i: x[i], name="T")
    func = te.create_prim_func([x, te.compute((4,), lambda i: t[i] * 2, name="Y")], name="f")
    without = replace(func, body=func.body[1:])
    arrays = interpret.random_inputs(without, 0)
    interpret.run(without, arrays)
    assert np.isnan(arrays[1]).all()


def test_a_reduction_without_an_init_goes_on_from_what_is_there():
    s = te.placeholder((4,), "int32", name="X")
    k = te.reduce_axis((0, 4), name="k")
    func = te.create_prim_func([s, te.compute((1,), lambda i: te.sum(s[k], axis=k), name="Y")], name="f")
    bare = func.rewrite(lambda b: replace(b, init=None) if isinstance(b, Block) else b)
    arrays = [np.array([1, 2, 3, 4], np.int32), np.array([100], np.int32)]
    interpret.run(bare, arrays)
    assert arrays[1].tolist() == [110]


def test_loops_run_in_order_so_that_a_scan_is_a_scan():
    # Y[i + 1] = Y[i] + X[i + 1], which te has no way to write.
    x = te.placeholder((5,), "int32", name="X")
    func = te.create_prim_func([x, te.compute((5,), lambda i: x[i], name="Y")], name="f")
    y = func.params[1]
    i, loop = Var("i", 4), Var("i", 4)
    value = Binary("add", Load(y, (poly(i),)), Load(x.buffer, (poly(i) + 1,)))
    scan = Block("scan", (i,), (IterKind.SPATIAL,), (poly(loop),), y, (poly(i) + 1,), value)
    arrays = [np.array([1, 2, 3, 4, 5], np.int32), np.zeros(5, np.int32)]
    interpret.run(replace(func, body=(*func.body, For(loop, (scan,)))), arrays)
    assert arrays[1].tolist() == [1, 3, 6, 10, 15]
