"""Equality and hash up to names, and keys that never change."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.compiler import te, topi
from tilewright.compiler.ir import (
    IRModule,
    parse_script,
    script,
    structural_equal,
    structural_hash,
    workload_key,
)

from . import golden_keys

LINES = golden_keys.lines()


def test_no_two_golden_workloads_share_a_key():
    assert len({key for key, _ in LINES}) == len(LINES) >= 50


@pytest.mark.parametrize(("key", "text"), LINES, ids=[t for _, t in LINES])
def test_a_workload_has_the_key_it_has_always_had(key, text):
    func = golden_keys.workload(text)
    read = parse_script(script(func))
    assert (workload_key(func), structural_hash(read)) == (key, key)
    assert script(read) == script(func)


def test_keys_are_the_same_in_every_process_locale_and_working_directory(tmp_path):
    places = [
        ("0", "C", tmp_path),
        ("1", "C.UTF-8", Path("/")),
        ("4711", "tr_TR.UTF-8", Path(__file__).parent),
        ("random", "de_DE.ISO-8859-1", Path.home() if Path.home().is_dir() else tmp_path),
    ]
    source = str(Path(tw.__file__).parents[1])
    children = [
        subprocess.Popen(
            [sys.executable, golden_keys.__file__],
            cwd=cwd,
            env={
                **os.environ,
                "PYTHONPATH": source,
                "PYTHONHASHSEED": seed,
                "LC_ALL": locale,
                "LANG": locale,
            },
            stdout=subprocess.PIPE,
            text=True,
            encoding="ascii",
        )
        for seed, locale, cwd in places
    ]
    printed = [child.communicate(timeout=100)[0] for child in children]
    assert [child.returncode for child in children] == [0] * len(children)
    assert printed == [golden_keys.GOLDEN.read_text(encoding="ascii")] * len(children)


def product(m=30, n=26, depth=17):
    """C[i, j] = the sum over k of A[i, k] * B[k, j]."""
    left = te.placeholder((m, depth), "float32", name="A")
    right = te.placeholder((depth, n), "float32", name="B")
    k = te.reduce_axis((0, depth), name="k")
    out = te.compute((m, n), lambda i, j: te.sum(left[i, k] * right[k, j], axis=k), name="C")
    return te.create_prim_func([left, right, out], name="matmul")


def renamed_product():
    """Out[a, b] = the sum over c of X[a, c] * Y[c, b]."""
    left = te.placeholder((30, 17), "float32", name="X")
    right = te.placeholder((17, 26), "float32", name="Y")
    c = te.reduce_axis((0, 17), name="c")
    out = te.compute((30, 26), lambda a, b: te.sum(left[a, c] * right[c, b], axis=c), name="Out")
    return te.create_prim_func([left, right, out], name="product_of_two")


def test_programs_that_differ_in_names_only_have_one_key():
    one, two = product(), renamed_product()
    assert script(one) != script(two)
    assert structural_equal(one, two)
    assert structural_hash(one) == structural_hash(two) == workload_key(two)


def test_programs_of_other_shapes_and_orders_have_other_keys():
    programs = [
        product(),
        product(m=31),
        product(n=31),
        product(depth=31),
        topi.create({"op": "matmul", "m": 30, "n": 26, "k": 17, "dtype": "float64"}),
        topi.create({"op": "matmul", "m": 30, "n": 26, "k": 17, "transpose_b": True}),
    ]
    assert len({structural_hash(p) for p in programs}) == len(programs)
    equal = [[structural_equal(a, b) for b in programs] for a in programs]
    assert equal == np.eye(len(programs), dtype=bool).tolist()


def hand_written(sch):
    block = sch.get_block(0)
    i, j, k = sch.get_loops(block)
    i0, i1 = sch.split(i, [None, 4])
    j0, j1 = sch.split(j, [None, 8])
    sch.reorder(i0, j0, k, i1, j1)
    sch.vectorize(j1)
    sch.unroll(i1)
    sch.cache_write(block, 0, "local")
    sch.decompose_reduction(block, k)


def test_a_stored_schedule_applies_to_the_program_under_other_names():
    sch = tw.Schedule(product())
    hand_written(sch)
    stored = json.dumps(sch.trace.to_json())
    again = tw.Trace.from_json(json.loads(stored)).apply(renamed_product())
    assert structural_equal(again.func, sch.func)
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-9, 9, shape).astype("f4") for shape in ((30, 17), (17, 26)))
    out = np.full((30, 26), np.nan, "f4")
    tw.build(again)(x, y, out)
    np.testing.assert_array_equal(out, x @ y)


def test_a_program_equals_no_module_and_a_module_its_copy_in_any_order():
    one, other = product(), topi.create({"op": "softmax", "m": 3, "n": 4})
    forth, back = IRModule.of(one, other), IRModule.of(other, parse_script(script(one)))
    assert structural_equal(forth, back) and structural_hash(forth) == structural_hash(back)
    assert not structural_equal(one, IRModule.of(one))
    assert not structural_equal(forth, IRModule.of(one))
    assert structural_hash(IRModule.of(one)) != structural_hash(forth)


def test_a_module_with_a_program_under_another_name_is_another_module():
    one, two = product(), renamed_product()
    assert structural_equal(one, two)
    assert not structural_equal(IRModule.of(one), IRModule.of(two))
    assert structural_hash(IRModule.of(one)) != structural_hash(IRModule.of(two))
