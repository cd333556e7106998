"""What a build takes of other hardware, another target or a related workload."""

import json
from dataclasses import replace

import numpy as np
import pytest

from tilewright.compiler.build import build
from tilewright.compiler.ir import PrimFunc, to_json, workload_key
from tilewright.compiler.schedule import Schedule
from tilewright.compiler.space import default_schedule
from tilewright.compiler.target import Target, detect
from tilewright.compiler.target.features import known_features

from .build_sources import Elsewhere, Near, Store, plus, split_by


@pytest.fixture
def func() -> PrimFunc:
    return plus(12)


HERE = detect()


def near(func: PrimFunc, sch: Schedule, target: Target | None = None, **facts: object) -> Near:
    """What is best-known for a program on a machine like this one but for these facts."""
    target = target or Target.parse("llvm")
    trace = json.dumps(sch.trace.to_json())
    schedule = Elsewhere(trace, workload=workload_key(func), target=target.key, hardware="e" * 64)
    program, description = json.dumps(to_json(func)), json.dumps(target.to_json())
    return Near(schedule, program, description, json.dumps(HERE.facts | facts))


def found(func: PrimFunc, *others: Near, allow: tuple[str, ...] = ()) -> tuple[str, str]:
    module = build(func, schedules=Store(others=list(others)), allow=allow)
    rows = module.params[0].shape[0]
    x, y = np.ones((rows, 20), "f4"), np.zeros((rows, 20), "f4")
    module(x, y)
    assert np.array_equal(y, x + 1)
    return module.schedule_source.kind, module.schedule_source.reason


def test_what_is_known_for_other_hardware_is_not_taken_unless_that_is_allowed(func: PrimFunc) -> None:
    other = near(func, split_by(5)(func))
    reason = f"no record for workload {workload_key(func)}, target {Target.parse('llvm').key}, "
    assert found(func, other) == ("default", reason + f"hardware {HERE.key}")
    kind, reason = found(func, other, allow=("same_family",))
    assert (kind, reason) == (
        "same_family",
        f"measured by trial job_1.0 for hardware eeeeeeeeeeee, target {Target.parse('llvm')}: "
        "of the family of this machine",
    )


def beyond_this_machine() -> str:
    """A target with a feature that this machine lacks."""
    wanted = sorted(set(known_features("x86_64")) - set(HERE.facts["features"]))
    return f"llvm -mcpu=x86-64-v3 -mattr=+{wanted[0]}"


@pytest.mark.parametrize(
    ("target", "facts", "why"),
    [
        (None, {"vendor": "Other"}, "vendor differs (Other, not {vendor})"),
        (None, {"vendor": None}, "vendor differs (unknown, not {vendor})"),
        (None, {"architecture": "sparc"}, "architecture differs (sparc, not {architecture})"),
        ("llvm -math=strict", {}, "math differs (strict, not reassoc)"),
        ("llvm -num-threads=2", {}, "num-threads differs (2, not 1)"),
        ("beyond", {}, "isa differs ("),
    ],
)
def test_another_family_is_a_miss_that_says_what_differs(
    func: PrimFunc, target: str | None, facts: dict[str, object], why: str
) -> None:
    of = None if target is None else Target.parse(beyond_this_machine() if target == "beyond" else target)
    kind, reason = found(func, near(func, split_by(5)(func), of, **facts), allow=("same_family",))
    assert kind == "default"
    assert f"; trial job_1.0: {why.format(**HERE.facts)}" in reason


def test_what_applies_here_is_transferred_from_another_family(func: PrimFunc) -> None:
    other = near(func, split_by(5)(func), vendor="Other")
    kind, reason = found(func, other, allow=("same_family", "transferred"))
    assert kind == "transferred"
    assert reason.endswith(
        f"where vendor differs (Other, not {HERE.facts['vendor']}); applied here, not timed"
    )


def test_sums_in_another_order_are_never_taken_over_by_who_asked_for_strict_ones(func: PrimFunc) -> None:
    store = Store(others=[near(func, split_by(5)(func))])
    module = build(func, "llvm -math=strict", schedules=store, allow=("same_family", "transferred"))
    source = module.schedule_source
    assert (source.kind, source.reason.rpartition("; ")[2]) == (
        "default",
        "trial job_1.0: math differs (reassoc, not strict)",
    )


@pytest.mark.parametrize(("rows", "nearest"), [(6, 8), (5, 4), (16, 8)])
def test_a_related_workload_does_within_a_factor_of_two(rows: int, nearest: int) -> None:
    known = [near(plus(m), split_by(2)(plus(m))) for m in (1, 2, 4, 8)]
    kind, reason = found(plus(rows), *known, allow=("transferred",))
    assert (kind, reason) == (
        "transferred",
        f"measured by trial job_1.0 for a related workload ({nearest} for {rows}); applied here, not timed",
    )


@pytest.mark.parametrize("rows", [17, 2048])
def test_a_related_workload_beyond_that_does_not(rows: int) -> None:
    known = [near(plus(m), split_by(2)(plus(m))) for m in (1, 2, 4, 8)]
    kind, reason = found(plus(rows), *known, allow=("transferred",))
    assert kind == "default"
    assert f"an extent differs by a factor of {rows / 8:.3g}, more than 2" in reason


def test_a_schedule_of_a_related_workload_is_moved_within_the_space() -> None:
    target = Target.parse("llvm")
    known = near(plus(96), default_schedule(plus(96), target))
    assert found(plus(100), known, allow=("transferred",))[0] == "transferred"


def test_what_is_near_and_damaged_is_passed_over_by_name(func: PrimFunc) -> None:
    good = near(func, split_by(5)(func))
    bad = [
        replace(good, schedule=replace(good.schedule, trace=text, trial=f"bad_{n}"))
        for n, text in enumerate(("{", '{"version": 9, "steps": []}'))
    ]
    bad += [
        replace(good, schedule=replace(good.schedule, trial="bad_2"), description='{"kind": "abacus"}'),
        replace(good, schedule=replace(good.schedule, trial="bad_3"), facts="[]"),
    ]
    assert found(func, *bad, good, allow=("same_family",))[0] == "same_family"
    reason = found(func, *bad, allow=("same_family",))[1]
    assert [f"bad_{n}" in reason for n in range(4)] == [True] * 4
