"""The Gaussian process, and what it promises of a field."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tilewright.tuner.cost_model import GaussianProcess, Posterior
from tilewright.tuner.local import LocalSearch
from tilewright.tuner.progress import NoProgress
from tilewright.tuner.recorded import RecordedSpace, ReplayDevice
from tilewright.tuner.recorder import NoRecorder
from tilewright.tuner.session import TuningSession
from tilewright.tuner.strategies import promise
from tilewright.tuner.strategies.guided import Guided

MATMUL = Path(__file__).parent.parent / "golden" / "spaces" / "matmul_4x64x64.json"

LINE = np.linspace(0, 1, 9)[:, None]


def fitted() -> GaussianProcess:
    points = np.stack([np.tile(LINE[:, 0], 3), np.repeat([0.0, 0.5, 1.0], 9)], axis=1)
    return GaussianProcess.fitted(points, np.sin(3 * points[:, 0]))


def test_a_process_knows_what_it_was_taught_and_little_of_what_is_far() -> None:
    process = fitted()
    posterior = Posterior(process, np.array([[0.5, 0.5], [0.4375, 0.25], [3.0, 0.5]]))
    assert posterior.mean[:2] == pytest.approx(np.sin([1.5, 1.3125]), abs=0.01)
    near, between, far = posterior.variance
    assert near < between < far


def test_a_coordinate_that_does_not_matter_gets_a_longer_scale() -> None:
    matters, idle = fitted().scales
    assert idle < matters / 4


def test_what_is_near_a_point_counted_as_measured_promises_less() -> None:
    posterior = Posterior(fitted(), np.array([[1.5, 0.5], [1.55, 0.5], [-1.0, 0.5]]))
    before, means = posterior.improvement(0.0), posterior.mean.copy()
    posterior.measuring(0)
    after = posterior.improvement(0.0)
    assert (after[:2] < before[:2]).all()
    assert after[2] == pytest.approx(before[2], rel=0.02)
    assert np.array_equal(posterior.mean, means)


def test_counting_points_as_measured_is_the_same_as_teaching_them_at_their_means() -> None:
    process = fitted()
    points = np.array([[1.2, 0.5], [1.4, 0.1], [1.3, 0.3]])
    posterior = Posterior(process, points)
    posterior.measuring(0)
    posterior.measuring(1)
    means = (posterior.mean[:2] - process.mean) / process.deviation
    taught = replace(
        process,
        points=np.concatenate([process.points, points[:2]]),
        values=np.concatenate([process.values, means]),
    )
    again = Posterior(taught, points)
    # The variance that fits is one of more values: it alone differs.
    scale = again.variance[0] / posterior.variance[0]
    assert again.variance == pytest.approx(posterior.variance * scale, rel=1e-4)
    assert again.mean == pytest.approx(posterior.mean, abs=1e-6)


def proposed(strategy: Guided) -> list[tuple[str, str]]:
    space = RecordedSpace.load(MATMUL)
    task = space.task()
    session = TuningSession(space, strategy, 64, target=task.target_key, codegen=task.codegen)
    LocalSearch(task, session, ReplayDevice(space), NoRecorder(), NoProgress(), racing=False).run()
    return [(candidate.key, candidate.origin) for candidate in session.candidates]


def test_half_of_the_places_of_a_small_space_go_to_what_is_promising() -> None:
    origins = [origin for _, origin in proposed(Guided(promising=0.5, patience=64))]
    assert origins[:16] == ["spread"] * 16
    assert 22 <= origins[16:].count("promising") <= 26


def test_without_scipy_the_places_go_to_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    without = proposed(Guided(promising=0.0))
    monkeypatch.setattr(promise, "available_process", lambda: False)
    assert proposed(Guided(promising=0.5)) == without
