"""Tuning a real kernel, measured on this machine."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from own_processes import own_children

from tilewright.compiler import te
from tilewright.compiler.build import build
from tilewright.compiler.ir import PrimFunc, workload_key
from tilewright.compiler.schedule import Schedule
from tilewright.compiler.space import SpaceError
from tilewright.compiler.topi import create
from tilewright.db import Store, open_store
from tilewright.tuner.tune import TuningRecord, tune


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path_factory.mktemp('tune')}/t.db") as store:
        yield store


@pytest.fixture(scope="module")
def func() -> PrimFunc:
    return create({"op": "matmul", "m": 32, "n": 48, "k": 40, "dtype": "float32"})


@pytest.fixture(scope="module")
def record(func: PrimFunc, store: Store) -> TuningRecord:
    return tune(func, "llvm", trials=6, store=store, seed=1, progress=False)


def test_a_kernel_is_tuned_within_its_budget(record: TuningRecord) -> None:
    assert (record.state, record.trial_count, record.failures) == ("completed", 6, {})


def test_the_tuned_schedule_computes_what_numpy_does(record: TuningRecord, func: PrimFunc) -> None:
    assert record.trace is not None
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((32, 40), (40, 48)))
    c = np.full((32, 48), np.nan, dtype=np.float32)
    build(record.trace.apply(func))(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5, atol=1e-5)


def test_building_with_the_store_finds_the_tuned_schedule(
    record: TuningRecord, func: PrimFunc, store: Store
) -> None:
    assert record.job is not None
    assert build(func, schedules=store).schedule_source.kind == "exact"


def test_constants_are_bound_to_the_tuned_kernel(store: Store) -> None:
    request = {"op": "dense", "m": 8, "n": 40, "k": 24, "bias": True, "constant_weights": True}
    func = create(request)
    record = tune(func, "llvm", trials=4, store=store, seed=1, progress=False)
    x, w, b = (
        np.arange(n, dtype="f4").reshape(s) % 7 - 3 for n, s in ((192, (8, 24)), (960, (24, 40)), (40, 40))
    )
    kernel = build(func, schedules=store, strict=True, constants={"W": w, "B": b})
    out = np.full((8, 40), np.nan, dtype="f4")
    kernel(x, out)
    np.testing.assert_array_equal(out, x @ w + b)
    assert (record.state, record.failures, kernel.schedule_source.kind) == ("completed", {}, "exact")
    assert [step.name for step in record.trace.instructions].count("compute_ahead") == 1
    # Without constants it is another workload, which nobody has tuned.
    plain = build(create({**request, "constant_weights": False}), schedules=store)
    assert plain.schedule_source.kind == "default"


def test_a_tuned_schedule_is_found_for_the_program_under_other_names(
    record: TuningRecord, func: PrimFunc, store: Store
) -> None:
    left, right = te.placeholder((32, 40), "float32", name="X"), te.placeholder((40, 48), "float32", name="Y")
    c = te.reduce_axis((0, 40), name="c")
    out = te.compute((32, 48), lambda a, b: te.sum(left[a, c] * right[c, b], axis=c), name="Out")
    renamed = te.create_prim_func([left, right, out], name="product_of_two")
    assert (record.state, workload_key(renamed)) == ("completed", workload_key(func))
    kernel = build(renamed, schedules=store, strict=True)
    x, y = (np.arange(n * m, dtype="f4").reshape(n, m) % 13 - 6 for n, m in ((32, 40), (40, 48)))
    z = np.full((32, 48), np.nan, dtype="f4")
    kernel(x, y, z)
    assert kernel.schedule_source.kind == "exact"
    np.testing.assert_array_equal(z, x @ y)


def test_tuning_leaves_no_process_behind(record: TuningRecord) -> None:
    assert (record.job is not None, own_children(recursive=True)) == (True, [])


def rows_and_columns(sch: Schedule) -> None:
    i, j, k = sch.get_loops(sch.get_block("C"))
    i0, i1 = sch.split(i, sch.sample_perfect_tile(i, 2, names=["rows"]))
    j0, j1 = sch.split(j, [None, sch.sample_categorical([8, 16], "columns")])
    sch.reorder(i0, j0, k, i1, j1)
    sch.vectorize(j1)


def test_a_space_of_ones_own_is_searched_within_its_constraints(func: PrimFunc) -> None:
    found = tune(
        func,
        trials=100,
        space=rows_and_columns,
        constraints=[lambda knobs: knobs["rows"] <= 2],
        progress=False,
    )
    assert (found.state, found.trial_count) == ("exhausted", 4)
    assert found.best is not None and found.best.candidate.row[0] <= 2


def test_a_space_whose_candidates_all_fail_says_why(func: PrimFunc) -> None:
    def unbuildable(sch: Schedule) -> None:
        sch.cache_write(sch.get_block("C"), 0, "register")

    found = tune(func, trials=4, space=unbuildable, progress=False)
    assert found.state == "failed"
    assert found.reason == (
        "none of 1 trials gave a time (build_error: 1); the space has no more than 1 candidates; "
        "the first one: check_registers: register buffer C_register is indexed by loop 'i' in 'C_init'; "
        "unroll that loop, or move all that uses the buffer inside of it"
    )


def test_constraints_without_a_space_of_ones_own_are_refused(func: PrimFunc) -> None:
    with pytest.raises(SpaceError, match="constraints are on the knobs of a space of your own; give space="):
        tune(func, trials=1, constraints=[lambda knobs: True])
