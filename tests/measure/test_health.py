from __future__ import annotations

from typing import Any

import pytest

from tilewright.measure.health import Norm, attached, explain, judge
from tilewright.measure.health_messages import GoldenPart, HealthPlan, HealthReport, PartName
from tilewright.measure.wire import MessageError

PLAN = HealthPlan()
STEADY: dict[PartName, tuple[float, ...]] = {
    "compute": (100e-6, 101e-6, 100e-6, 101.5e-6, 100e-6),
    "memory": (200e-6, 200e-6, 201e-6, 200e-6, 200e-6),
}


def norm(**more: tuple[float, ...]) -> Norm:
    return attached({**STEADY, **more}, PLAN)[0]  # type: ignore[dict-item]


def times(compute: float = 100e-6, memory: float = 200e-6, spread: float = 0.0) -> Any:
    return {"compute": (compute, compute * (1 + spread)), "memory": (memory, memory)}


@pytest.mark.parametrize(
    ("spread", "limit"), [(0.0, 0.03), (0.005, 0.03), (0.01, 0.03), (0.02, 0.06), (0.1, 0.3)]
)
def test_a_time_may_move_by_3_percent_or_by_three_times_the_spread_at_attach(
    spread: float, limit: float
) -> None:
    made = norm(compute=(100e-6, 100e-6 * (1 + spread), 100e-6))
    assert made.parts[0].limit == pytest.approx(limit)


@pytest.mark.parametrize(
    ("spread", "grade"), [(0.0, "steady"), (0.0199, "steady"), (0.05, "ordinary"), (0.5, "noisy")]
)
def test_a_device_is_graded_by_its_widest_spread_at_attach(spread: float, grade: str) -> None:
    assert norm(compute=(100e-6, 100e-6 * (1 + spread))).grade.name == grade


@pytest.mark.parametrize("factor", [0.956, 0.99, 1.0, 1.02, 1.044])
def test_within_the_limit_a_device_is_healthy(factor: float) -> None:
    assert judge(norm(), times(100e-6 * factor), "periodic", was_suspect=True).verdict == "healthy"


@pytest.mark.parametrize("factor", [0.5, 0.9, 1.07, 1.3, 10.0])
@pytest.mark.parametrize(("was_suspect", "verdict"), [(False, "suspect"), (True, "drifted")])
def test_a_drift_counts_the_second_time_in_a_row(factor: float, was_suspect: bool, verdict: str) -> None:
    assert judge(norm(), times(100e-6 * factor), "periodic", was_suspect=was_suspect).verdict == verdict


@pytest.mark.parametrize(("spread", "verdict"), [(0.09, "healthy"), (0.11, "dispersed")])
def test_a_steady_device_whose_processes_differ_by_more_than_10_percent_is_dispersed(
    spread: float, verdict: str
) -> None:
    assert judge(norm(), times(spread=spread), "periodic", was_suspect=True).verdict == verdict


def test_a_device_that_was_noisy_at_attach_may_stay_so() -> None:
    noisy = norm(compute=(100e-6, 150e-6))
    assert judge(noisy, times(spread=0.9), "periodic", was_suspect=True).verdict == "healthy"


def test_a_drift_is_explained_by_its_numbers() -> None:
    report = judge(norm(), times(118e-6), "periodic", was_suspect=True)
    assert explain(report) == (
        "golden kernel: compute takes 118 µs, 18.0% more than the 100 µs at attach, twice in a row; the "
        "limit is 4.5%"
    )


def test_a_device_that_became_faster_is_another_one_too() -> None:
    report = judge(norm(), times(memory=150e-6), "periodic", was_suspect=False)
    assert explain(report) == (
        "golden kernel: memory takes 150 µs, 25.0% less than the 200 µs at attach; the limit is 3.0%"
    )


def test_dispersion_is_explained_by_its_numbers() -> None:
    report = judge(norm(), times(spread=0.4), "periodic", was_suspect=True)
    assert explain(report) == (
        "golden kernel: compute differs by 40% between fresh processes, twice in a row; for a device that "
        "was steady at attach the limit is 10%"
    )


def test_a_healthy_device_needs_no_explanation() -> None:
    assert explain(judge(norm(), times(), "periodic", was_suspect=False)) == ""


PART = GoldenPart("compute", 1e-4, 0.0, 1e-4, 0.03)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"verdict": "splendid"}, "/verdict: expected one of healthy, suspect, failed, drifted, dispersed"),
        ({"parts": []}, "a verdict without the parts that it is about"),
        ({"parts": [PART.to_json()] * 2}, "a part that is there twice"),
        ({"parts": [{**PART.to_json(), "seconds": -1.0}]}, "/parts/0/seconds: must be above 0"),
        (
            {"parts": [{**PART.to_json(), "seconds": float("nan")}]},
            "/parts/0/seconds: must be a finite number",
        ),
        ({"parts": [{**PART.to_json(), "part": "disk"}]}, "/parts/0/part: expected one of compute, memory"),
        ({"verdict": "failed"}, "a failure without a message"),
        ({"message": "x" * 2_001}, "/message: must have at most 2000 characters"),
        ({"rank": 1}, "/rank: unknown field"),
    ],
)
def test_a_report_that_makes_no_sense_is_refused(change: dict[str, Any], complaint: str) -> None:
    said = HealthReport("periodic", "healthy", "steady", (PART,)).to_json() | change
    with pytest.raises(MessageError) as refused:
        HealthReport.from_json(said)
    assert complaint in str(refused.value)
