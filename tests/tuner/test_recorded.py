"""Recorded spaces and the device that answers from them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright.measure.messages import MeasureInput
from tilewright.tuner.local import LocalSearch
from tilewright.tuner.progress import NoProgress
from tilewright.tuner.recorded import RecordedSpace, RecordedSpaceError, ReplayDevice
from tilewright.tuner.recorder import NoRecorder
from tilewright.tuner.session import TuningSession
from tilewright.tuner.strategies import DEFAULT, STRATEGIES, load_strategy

MATMUL = Path(__file__).parent.parent / "golden" / "spaces" / "matmul_4x64x64.json"

SMALL = {
    "params": ["tile", "unroll"],
    "configs": [[1, 0], [2, 0], [6, 0], [1, 1], [6, 1]],
    "time_ms": [4.0, 2.0, None, 1.0, 8.0],
    "device": "a device",
}


def small() -> RecordedSpace:
    return RecordedSpace.of(SMALL, "small")


def searched(space: RecordedSpace, strategy: str, trials: int, seed: int = 0) -> TuningSession:
    task = space.task()
    session = TuningSession(
        space,
        load_strategy(strategy),
        trials,
        target=task.target_key,
        codegen=task.codegen,
        seed=seed,
        max_failures=1000,
    )
    LocalSearch(task, session, ReplayDevice(space), NoRecorder(), NoProgress(), seed=seed).run()
    return session


def item(config: dict[str, int]) -> MeasureInput:
    return MeasureInput("one", 1, {}, {}, {"version": 1, "config": config})


def test_the_parameters_are_the_knobs_of_one_sketch_and_the_table_says_what_is_valid() -> None:
    columns = small().columns
    rows = np.array([[1, 0], [2, 1], [6, 1], [3, 0]])
    assert (
        [(knob.name, knob.domain) for knob in columns.knobs],
        columns.valid(rows).tolist(),
        columns.violations(rows),
    ) == ([("tile", (1, 2, 6)), ("unroll", (0, 1))], [True, False, True, False], {"in the table": 2})


def test_features_are_the_parameters_their_products_and_ratios_and_odd_parts() -> None:
    space = RecordedSpace.of(
        {"params": ["a", "b"], "configs": [[12, 0], [3, 1], [1, 7]], "time_ms": [1, 2, 3]}, "f"
    )
    columns = space.columns
    named = dict(zip(columns.feature_names, columns.features(space.configs).T.tolist(), strict=True))
    assert named == {
        "a": [12, 3, 1],
        "b": [0, 1, 7],
        "a*b": [12, 6, 8],
        "a/b": [12, 1.5, 0.125],
        "odd part of a": [3, 3, 1],
        "odd part of b": [1, 1, 7],
        "product of the odd parts": [3, 3, 7],
    }


def test_the_device_answers_with_the_recorded_time_or_failure() -> None:
    device = ReplayDevice(small())
    told = [device.measure(item({"unroll": u, "tile": t})) for t, u in [(2, 0), (6, 0), (2, 1)]]
    assert [(r.seconds, r.failure.kind if r.failure else None) for r in told] == [
        (0.002, None),
        (None, "run_error"),
        (None, "constraint"),
    ]


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_every_strategy_finds_the_best_of_a_space_that_it_exhausts(strategy: str) -> None:
    session = searched(small(), strategy, 50)
    assert session.best is not None
    assert (session.state, session.told, session.failures, session.best.candidate.row) == (
        "exhausted",
        5,
        {"run_error": 1},
        (1, 1),
    )


def test_mutations_and_neighbours_stay_in_the_table() -> None:
    space = RecordedSpace.load(MATMUL)
    rng = np.random.default_rng(0)
    parents = space.columns.random(20, rng)
    children, beside = space.columns.mutate(parents, 2000, rng), space.columns.neighbours(parents)
    table = set(map(tuple, space.configs.tolist()))
    assert (set(map(tuple, children.tolist())) <= table, set(map(tuple, beside.tolist())) <= table) == (
        True,
        True,
    )
    assert len(children) > 500


def test_neighbours_differ_in_one_parameter_and_the_nearest_come_first() -> None:
    document = {"params": ["a", "b"], "configs": [[1, 1], [2, 1], [4, 1], [2, 2], [1, 2]], "time_ms": [1] * 5}
    columns = RecordedSpace.of(document, "n").columns
    assert columns.neighbours(np.array([[1, 1]])).tolist() == [[2, 1], [1, 2], [4, 1]]


def test_what_one_device_measured_is_the_prior_of_another() -> None:
    prior = small().prior()
    assert (prior.scores.tolist(), prior.groups.tolist(), prior.says, prior.schema) == (
        [0.25, 0.5, 0.0, 1.0, 0.125],
        [0] * 5,
        "small",
        small().feature_schema,
    )
    assert small().fastest(2) == [(1, 1), (2, 0)]


def test_spaces_with_other_parameters_have_another_feature_schema() -> None:
    other = RecordedSpace.of(SMALL | {"params": ["tile", "order"]}, "other")
    same = RecordedSpace.of(SMALL | {"time_ms": [1, 1, 1, 1, 1]}, "same")
    assert small().feature_schema == same.feature_schema != other.feature_schema


@pytest.mark.parametrize("packed", [True, False])
def test_a_file_is_read_gzipped_or_plain(tmp_path: Path, packed: bool) -> None:
    text = json.dumps(SMALL).encode()
    path = tmp_path / ("some.json.gz" if packed else "some.json")
    path.write_bytes(gzip.compress(text) if packed else text)
    space = RecordedSpace.load(path)
    assert (space.name, space.device, space.optimum, space.workload_key) == (
        "some",
        "a device",
        0.001,
        small().workload_key,
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"params": None}, "'params' is no list"),
        ({"configs": []}, "it has 0 configs; 1 to 1048576 are due"),
        ({"params": ["a", "a"]}, "params are different names, at least one, not ['a', 'a']"),
        ({"time_ms": [1.0]}, "5 configs have 1 times"),
        (
            {"configs": [[1, 0], [2], [6, 0], [1, 1], [6, 1]]},
            "config 1 is [2]; a list of 2 values (tile, unroll) is due",
        ),
        (
            {"configs": [[1, 0], [2, 0], [6, 0.5], [1, 1], [6, 1]]},
            "unroll of config 2 is 0.5; an integer below 2^53 is due",
        ),
        (
            {"configs": [[1, 0], [2, 0], [6, 0], [1, True], [6, 1]]},
            "unroll of config 3 is True; an integer below 2^53 is due",
        ),
        ({"configs": [[1, 0], [2, 0], [1, 0], [1, 1], [6, 1]]}, "configs 0 and 2 are the same: [1, 0]"),
        ({"time_ms": [4.0, 0, 1, 1, 1]}, "time_ms 1 is 0; above 0, or null for a failure, is due"),
        (
            {"time_ms": [4.0, 1, 1, 1, float("nan")]},
            "time_ms 4 is nan; above 0, or null for a failure, is due",
        ),
        ({"time_ms": [4.0, 1, "1", 1, 1]}, "time_ms 2 is '1'; above 0, or null for a failure, is due"),
        ({"time_ms": [None] * 5}, "every configuration failed"),
    ],
)
def test_a_malformed_space_is_refused_with_the_place_and_what_is_due(
    change: dict[str, Any], reason: str
) -> None:
    with pytest.raises(RecordedSpaceError) as refused:
        RecordedSpace.of(SMALL | change, "bad", "bad.json")
    assert str(refused.value) == f"bad.json is no recorded space: {reason}"


@pytest.mark.parametrize("content", [b"\x1f\x8bnot gzip", b"{", b"\xff\xfe"])
def test_a_file_that_is_no_json_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.json.gz"
    path.write_bytes(content)
    with pytest.raises(RecordedSpaceError, match="neither JSON nor gzipped JSON"):
        RecordedSpace.load(path)


def test_a_json_list_is_no_space() -> None:
    with pytest.raises(RecordedSpaceError) as refused:
        RecordedSpace.of([], "bad", "bad.json")
    assert str(refused.value) == (
        "bad.json is no recorded space: it holds a list; an object with params, configs and time_ms is due"
    )


def test_the_default_finds_a_recorded_matmul_in_a_tenth_of_its_space_and_random_search_does_not() -> None:
    space = RecordedSpace.load(MATMUL)

    def mean_ratio(strategy: str) -> float:
        best = [searched(space, strategy, len(space.configs) // 10, seed).best for seed in range(6)]
        return float(np.mean([trial.outcome.seconds or np.nan for trial in best if trial])) / space.optimum

    assert mean_ratio(DEFAULT) < 1.05 < mean_ratio("random")


def test_a_replayed_search_repeats_trial_by_trial() -> None:
    space = RecordedSpace.load(MATMUL)
    one, other = (searched(space, DEFAULT, 48, seed=3).history for _ in range(2))
    assert [(t.candidate.row, t.outcome) for t in one] == [(t.candidate.row, t.outcome) for t in other]
