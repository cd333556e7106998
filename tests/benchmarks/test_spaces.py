"""The benchmark of searches on recorded spaces."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import pytest
from searching.peer_kernel_tuner import kernel_tuner
from searching.replaying import Contestant, curves, looked_up, named
from searching.spaces import add_arguments, evaluations_to, ratio_at, run

from tilewright.tuner.recorded import RecordedSpace
from tilewright.tuner.strategies.guided import Guided

SPACES = Path(__file__).parent.parent / "golden" / "spaces"
MATMUL = "matmul_4x64x64"


@pytest.fixture(scope="module")
def space() -> RecordedSpace:
    return RecordedSpace.load(SPACES / f"{MATMUL}.json")


def options(*more: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(["--spaces", str(SPACES), "--seeds", "2", "--evaluations", "25", *more])


def test_ratios_are_means_over_seeds_of_the_best_so_far() -> None:
    found = [[4.0, 2.0, 2.0], [None, 3.0]]
    assert (ratio_at(found, 1.0, 1), ratio_at(found, 1.0, 2), ratio_at(found, 2.0, 3)) == (
        float("inf"),
        2.5,
        1.25,
    )


def test_the_evaluations_to_a_share_of_the_optimum_are_a_median_and_may_not_be_reached() -> None:
    found = [[4.0, 2.0, 1.0], [1.1, 1.1, 1.1], [None, 1.05, 1.05]]
    assert (evaluations_to(found, 1.0, 0.9), evaluations_to(found, 1.0, 0.99)) == (2, float("inf"))


def test_a_search_of_the_benchmark_is_that_of_the_session(space: RecordedSpace) -> None:
    (one,) = curves(space, named("random"), 10, [3])
    assert len(one) == 10
    assert [b for b in one if b is not None] == sorted((b for b in one if b is not None), reverse=True)


def test_what_another_device_found_fastest_is_looked_up_in_its_order(space: RecordedSpace) -> None:
    best = looked_up(space, space, 3)
    assert best == pytest.approx([space.optimum * 1e3] * 3)


def test_a_search_with_the_very_table_as_history_finds_the_optimum_at_once(space: RecordedSpace) -> None:
    (found,) = curves(space, Contestant("transfer", Guided, space, 1), 8, [0])
    assert found[0] == pytest.approx(space.optimum * 1e3)


def test_the_tables_have_a_row_for_every_contestant(capsys: pytest.CaptureFixture[str]) -> None:
    tables = run(options("--strategies", "random,guided", "--ablation", "--objectives"))
    assert [(table.title, [row[0] for row in table.rows]) for table in tables] == [
        ("matmul_4x64x64: 624 configurations", ["random", "guided"]),
        (
            "matmul_4x64x64: without a part",
            [
                "guided",
                "without the cost model",
                "without local refinement",
                "without descending from the best",
                "without looking elsewhere",
                "without points spread at first",
            ],
        ),
        ("matmul_4x64x64: what the cost model learns", ["throughput", "log time", "rank"]),
    ]
    assert tables[0].markdown() in capsys.readouterr().out


def test_an_unknown_space_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SystemExit, match=r"no space 'gemm' in .*; there are: matmul_4x64x64"):
        run(options("--space", "gemm"))


def test_kernel_tuner_answers_by_strategy_and_says_what_it_misses(
    tmp_path: Path, space: RecordedSpace
) -> None:
    """With a program in the interpreter's place, which answers as that one does."""
    stub = tmp_path / "python"
    strategies = {
        "pso": {"best": {"2": [[2.0, 1.0]], "3": [[2.0, 2.0, 1.0]]}},
        "skopt": {"missing": "no skopt"},
    }
    answer = json.dumps({"version": "1.5.0", "strategies": strategies})
    stub.write_text(f"#!{sys.executable}\nimport sys\nsys.stdin.read()\nprint({answer!r})\n")
    stub.chmod(0o755)
    told = kernel_tuner(str(stub), space, [0], [2, 3])
    assert (told.version, told.best_at("pso", 2), told.best_at("pso", 3), told.missing) == (
        "1.5.0",
        [[2.0, 1.0]],
        [[2.0, 2.0, 1.0]],
        {"skopt": "no skopt"},
    )


def test_an_interpreter_without_kernel_tuner_is_said_to_have_failed(space: RecordedSpace) -> None:
    with pytest.raises(RuntimeError, match="No module named 'kernel_tuner'"):
        kernel_tuner(sys.executable, space, [0], [2])
