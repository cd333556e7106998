"""Every operator, built by its default schedule, gives what the reference gives; and its space has sketches
that apply."""

from dataclasses import replace
from shutil import which

import numpy as np
import pytest

from tilewright.compiler import interpret, topi
from tilewright.compiler.build import build
from tilewright.compiler.codegen.c import generator
from tilewright.compiler.codegen.c.compile import COMPILERS
from tilewright.compiler.runtime import Function
from tilewright.compiler.schedule import Schedule
from tilewright.compiler.space import space_of
from tilewright.compiler.target import Target

from .requests import REQUESTS

NAMES = [" ".join(str(v) for v in r.values()) for r in REQUESTS]


@pytest.fixture(scope="module")
def host():
    return Target.parse("llvm")


@pytest.mark.parametrize("request_", REQUESTS, ids=NAMES)
def test_a_built_operator_is_within_the_tolerance_of_the_reference(request_, host):
    func = topi.create(request_)
    arrays = interpret.random_inputs(func, seed=4)
    expected = interpret.expected(func, arrays)
    module = build(func, host)
    assert [p.dtype for p in module.params] == [str(p.dtype) for p in func.params]
    module(*arrays)
    assert interpret.check(expected, arrays).message == ""


ONE_OF_EACH = list({r["op"]: r for r in REQUESTS}.values())


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


IN_C = {" ".join(str(v) for v in r.values()): r for r in reversed(REQUESTS)}
IN_C = {name: r for name, r in IN_C.items() if r in ONE_OF_EACH or r.get("dtype") in ("float16", "bfloat16")}


@pytest.fixture(scope="module")
def kernels():
    """Operators in C as they stand, in one file."""
    if not any(map(which, COMPILERS)):
        pytest.skip("there is no C compiler")
    target = Target.parse("c")
    funcs = [replace(topi.create(r), name=f"kernel{n}") for n, r in enumerate(IN_C.values())]
    made = [generator.kernel(f, target) for f in funcs]
    code = generator.load_together(made, target)
    modules = [Function(k.name, k.params, k.workspaces, code, sizes=k.sizes) for k in made]
    return dict(zip(IN_C, modules, strict=True))


@pytest.mark.parametrize("name", IN_C)
def test_an_operator_in_c_is_within_the_tolerance_of_the_reference(name, kernels):
    func = topi.create(IN_C[name])
    arrays = interpret.random_inputs(func, seed=4)
    expected = interpret.expected(func, arrays)
    kernels[name](*arrays)
    assert interpret.check(expected, arrays).message == ""
