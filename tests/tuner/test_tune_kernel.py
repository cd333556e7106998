"""Tuning a real kernel, measured on this machine."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import psutil
import pytest

from tilewright.compiler.build import build
from tilewright.compiler.ir import PrimFunc
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


def test_tuning_leaves_no_process_behind(record: TuningRecord) -> None:
    assert (record.job is not None, psutil.Process().children(recursive=True)) == (True, [])
