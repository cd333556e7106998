"""A rule that fails costs a workload its structures, and no more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from tilewright.compiler import topi
from tilewright.compiler.build import build
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.schedule import Schedule
from tilewright.compiler.space import default_schedule, rules, space, space_of
from tilewright.compiler.space.containment import Broken, RuleError
from tilewright.compiler.space.groups import Group
from tilewright.compiler.space.rules import Structure
from tilewright.compiler.space.sketch import Constraint, SearchSpace
from tilewright.compiler.target import Target

TARGET = Target.parse("llvm -mcpu=x86-64-v3")
MATMUL = {"op": "matmul", "m": 24, "n": 40, "k": 16, "dtype": "float32"}
OPERATORS = [
    MATMUL,
    {"op": "matmul", "m": 13, "n": 61, "k": 7, "dtype": "float16"},
    {"op": "dense", "m": 8, "n": 40, "k": 24, "bias": True, "activation": "relu"},
    {"op": "softmax", "m": 16, "n": 40},
    {"op": "layer_norm", "m": 16, "n": 40},
]


@dataclass(frozen=True)
class Failing:
    """A structure that looks right until it is made."""

    error: Exception
    name: str = "promising"
    fallback: bool = False

    def apply(self, sch: Schedule, group: Group, target: Target, tag: str) -> list[Constraint]:
        raise self.error


def raises_while_it_looks(func: PrimFunc, group: Group, target: Target) -> Iterator[Structure]:
    raise KeyError("no such axis\nsecond line")
    yield


def refuses_while_it_looks(func: PrimFunc, group: Group, target: Target) -> Iterator[Structure]:
    sch = Schedule(func)
    sch.split(sch.get_loops(sch.get_block(group.main))[0], [None, -3])
    yield Failing(KeyError("never"))


def proposes_what_fails(func: PrimFunc, group: Group, target: Target) -> Iterator[Structure]:
    yield Failing(ZeroDivisionError("division by zero"))


def with_rule(monkeypatch: pytest.MonkeyPatch, rule: Callable[..., object], request: dict) -> SearchSpace:
    monkeypatch.setattr(rules, "RULES", (rule, *rules.RULES))
    return space_of(topi.create(request), TARGET)


@pytest.mark.parametrize("request_", OPERATORS, ids=lambda r: r["op"])
@pytest.mark.parametrize(
    ("rule", "named", "told"),
    [
        (raises_while_it_looks, "raises_while_it_looks", "KeyError: 'no such axis\\nsecond line' (at "),
        (refuses_while_it_looks, "refuses_while_it_looks", "ScheduleError: split: "),
        (proposes_what_fails, "promising", "ZeroDivisionError: division by zero (at test_containment.py:"),
    ],
)
def test_a_rule_that_fails_is_named_with_the_workload_and_the_other_structures_stay(
    request_: dict, rule: Callable[..., object], named: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    func = topi.create(request_)
    whole = space_of(func, TARGET)
    found = with_rule(monkeypatch, rule, request_)
    assert [s.name for s in found.sketches] == [s.name for s in whole.sketches]
    ((rule_named, message),) = found.errors.items()
    # The structure has another name where it is made of converted operands.
    assert (whole.errors, rule_named.removesuffix(", in float32")) == ({}, named)
    assert message.startswith(f"rule '{rule_named}' fails on '{func.name}': {told}")


@pytest.mark.parametrize("rule", [raises_while_it_looks, proposes_what_fails])
def test_a_program_builds_and_is_right_where_a_rule_fails(
    rule: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "RULES", (rule, *rules.RULES))
    func = topi.create(MATMUL)
    a, b = (np.arange(n * m, dtype="f4").reshape(n, m) % 7 - 3 for n, m in ((24, 16), (16, 40)))
    c = np.full((24, 40), np.nan, dtype="f4")
    build(default_schedule(func, TARGET).func)(a, b, c)
    np.testing.assert_array_equal(c, a @ b)


def test_where_every_rule_fails_the_program_stays_as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "RULES", (raises_while_it_looks,))
    found = space_of(topi.create(MATMUL), TARGET)
    assert ([s.name for s in found.sketches], list(found.errors)) == (
        ["as written"],
        ["raises_while_it_looks"],
    )


@pytest.mark.parametrize(("step", "named"), [("inline_elementwise", "inlining"), ("groups_of", "grouping")])
def test_a_step_ahead_of_all_rules_that_fails_leaves_the_program_as_written(
    step: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise IndexError("list index out of range")

    monkeypatch.setattr(space, step, fail)
    found = space_of(topi.create(MATMUL), TARGET)
    assert [s.name for s in found.sketches] == ["as written"]
    assert found.errors[named].startswith(f"rule '{named}' fails on 'matmul': IndexError: list index out of")


def test_a_rule_that_fails_for_a_lighter_group_is_named_too(monkeypatch: pytest.MonkeyPatch) -> None:
    softmax = {"op": "softmax", "m": 16, "n": 40}
    monkeypatch.setattr(rules, "RULES", (proposes_what_fails, *rules.RULES[1:]))
    found = space_of(topi.create(softmax), TARGET)
    assert list(found.errors) == ["promising"]
    assert len(found.sketches) >= 1


def test_an_interruption_is_no_failure_of_a_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(func: PrimFunc, group: Group, target: Target) -> Iterator[Structure]:
        raise KeyboardInterrupt
        yield

    with pytest.raises(KeyboardInterrupt):
        with_rule(monkeypatch, interrupted, MATMUL)


def test_what_stands_for_a_broken_rule_cannot_be_made() -> None:
    broken = Broken(RuleError("r", "w", "KeyError: 1 (at r.py:1)"))
    with pytest.raises(RuleError, match=r"^rule 'r' fails on 'w': KeyError: 1 \(at r\.py:1\)$"):
        broken.apply(None, None, TARGET, "")  # type: ignore[arg-type]
