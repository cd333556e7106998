"""What the columns of features say of a known schedule."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.compiler import topi
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.schedule import Schedule
from tilewright.compiler.space import FEATURE_NAMES, FEATURE_SCHEMA, space_of, user_space
from tilewright.compiler.target import Target

TARGET = Target.parse("llvm -mcpu=x86-64-v4")


def tiled(sch: Schedule) -> None:
    """i 0..7, j 0..1, k 0..31 around a tile of 4 x 2 vectors of 16 lanes."""
    c = sch.get_block("C")
    i, j, k = sch.get_loops(c)
    i0, i1 = sch.split(i, [None, sch.sample_categorical([4], "rows")])
    j0, j1, j2 = sch.split(j, [None, sch.sample_categorical([2], "vectors"), 16])
    sch.reorder(i0, j0, k, i1, j1, j2)
    sch.unroll(i1)
    sch.unroll(j1)
    sch.vectorize(j2)


def features() -> dict[str, float]:
    func = topi.create({"op": "matmul", "m": 32, "n": 64, "k": 32})
    (sketch,) = user_space(func, tiled).sketches
    (row,) = sketch.columns.features(np.array([[4, 2]]))
    return dict(zip(FEATURE_NAMES, row.tolist(), strict=True))


def test_the_schema_is_known_by_a_number_and_its_columns_have_names_of_their_own() -> None:
    assert (FEATURE_SCHEMA, len(FEATURE_NAMES), len(set(FEATURE_NAMES))) == (5, 219, 219)


def test_extents_bytes_intensity_and_reuse_are_told_for_every_loop_level() -> None:
    f = features()
    # From the innermost: 16 lanes, 2 vectors, 4 rows, k, then the tiles of j and i.
    assert [f[f"extent.{n}"] for n in range(7)] == [16, 2, 4, 32, 2, 8, 1]
    # C: 64 bytes a vector; A: a line for each row, two from a step of k on; B: 32 columns.
    assert [f[f"bytes.{n}"] for n in range(6)] == [
        64 + 64 + 64,
        128 + 64 + 128,
        512 + 256 + 128,
        512 + 512 + 32 * 128,
        1024 + 512 + 32 * 256,
        8192 + 4096 + 8192,
    ]
    points = np.cumprod([16, 2, 4, 32, 2, 8])
    assert [f[f"intensity.{n}"] for n in range(6)] == pytest.approx(
        [p / f[f"bytes.{n}"] for n, p in enumerate(points)]
    )


def test_an_access_is_used_again_after_what_one_turn_of_a_loop_touches_that_does_not_move_it() -> None:
    f = features()
    used = {s: [f[f"reuse distance.{s}.{n}"] for n in range(7)] for s in range(3)}
    # k leaves C where it is; lanes and tiles of j leave A; rows and tiles of i leave B.
    assert used[0] == [0, 0, 0, f["bytes.2"], 0, 0, 0]
    assert used[1] == [3 * 64, f["bytes.0"], 0, 0, f["bytes.3"], 0, 0]
    assert used[2] == [0, 0, f["bytes.1"], 0, 0, f["bytes.4"], 0]


def test_vectors_and_registers_are_counted() -> None:
    f = features()
    assert (f["lanes"], f["trips"], f["vectors"]) == (16, 32 * 64 * 32, 32 * 64 * 32 / 16)
    # 4 x 2 vectors of results, 4 elements of A in all lanes, 2 vectors of B.
    assert (f["accumulators"], f["registers"]) == (8, 8 + 4 + 2)


def test_a_space_of_a_user_has_the_same_columns(workload: PrimFunc) -> None:
    def space(sch: Schedule) -> None:
        for name in [b.name for _, b in sch.func.blocks()]:
            loops = sch.get_loops(sch.get_block(name))
            if loops:
                sch.split(loops[-1], [None, sch.sample_categorical([1, 2, 4], f"{name}_tile")])

    (sketch,) = user_space(workload, space).sketches
    every = sketch.columns.every(1000)
    assert every is not None
    ours = space_of(workload, TARGET).sketches[0].columns
    theirs = sketch.columns.features(every[:3])
    assert theirs.shape[1] == ours.features(ours.random(1, np.random.default_rng(0))).shape[1]
    assert np.isfinite(theirs).all()
