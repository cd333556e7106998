"""Every operator, built by its default schedule, gives what the reference gives; and its space has sketches
that apply."""

import numpy as np
import pytest

from tilewright.compiler import interpret, topi
from tilewright.compiler.build import build
from tilewright.compiler.schedule import Schedule
from tilewright.compiler.space import space_of
from tilewright.compiler.target import Target

from .requests import REQUESTS

#: float16 and bfloat16 are tried with the code generator that has them.
BUILT = [r for r in REQUESTS if r.get("dtype", "float32") not in ("float16", "bfloat16")]
NAMES = [" ".join(str(v) for v in r.values()) for r in BUILT]


@pytest.fixture(scope="module")
def host():
    return Target.parse("llvm")


@pytest.mark.parametrize("request_", BUILT, ids=NAMES)
def test_a_built_operator_is_within_the_tolerance_of_the_reference(request_, host):
    func = topi.create(request_)
    arrays = interpret.random_inputs(func, seed=4)
    expected = interpret.expected(func, arrays)
    module = build(func, host)
    assert [p.dtype for p in module.params] == [str(p.dtype) for p in func.params]
    module(*arrays)
    assert interpret.check(expected, arrays).message == ""


ONE_OF_EACH = list({r["op"]: r for r in BUILT}.values())


@pytest.mark.parametrize("request_", ONE_OF_EACH, ids=lambda r: r["op"])
def test_random_schedules_of_an_operator_keep_its_meaning(request_, host):
    func = topi.create(request_)
    arrays = interpret.random_inputs(func, seed=5)
    expected = interpret.expected(func, arrays)
    space = space_of(func, host)
    assert space.sketches
    for sketch in space.sketches[:2]:
        for row in sketch.columns.random(4, np.random.default_rng(1))[:1]:
            fresh = [
                interpret.poisoned(p) if p in func.outputs else a
                for p, a in zip(func.params, arrays, strict=True)
            ]
            schedule = sketch.resolve(row).apply(func)
            assert isinstance(schedule, Schedule)
            build(schedule, host)(*fresh)
            assert interpret.check(expected, fresh).message == ""
