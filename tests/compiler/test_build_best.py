"""What a build takes: a schedule as it stands, the best-known one, or the default, and why."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from tilewright.compiler import CODEGEN_VERSION, interpret, te
from tilewright.compiler.build import build
from tilewright.compiler.codegen.errors import BuildError
from tilewright.compiler.ir import PrimFunc, parse_script, workload_key
from tilewright.compiler.runtime import Module
from tilewright.compiler.schedule import Schedule
from tilewright.compiler.target import Target, TargetError, detect

from .build_sources import Record, Store, plus, split_by


@pytest.fixture
def func() -> PrimFunc:
    return plus(12)


def record_of(sch: Schedule) -> Record:
    return Record(json.dumps(sch.trace.to_json()))


def adds_one(module: Module) -> bool:
    x = np.arange(240, dtype="f4").reshape(12, 20)
    y = np.full((12, 20), np.nan, "f4")
    module(x, y)
    return bool(np.all(y == x + 1))


def test_a_schedule_is_built_as_it_stands(func: PrimFunc) -> None:
    sch = split_by(5)(func)
    module = build(sch)
    assert (module.schedule_source.kind, module.script, adds_one(module)) == ("scheduled", str(sch), True)


def test_a_program_gets_the_default_schedule(func: PrimFunc) -> None:
    module = build(func)
    source = module.schedule_source
    assert (source.kind, source.reason, adds_one(module)) == ("default", "no schedules were given", True)


def test_the_best_known_schedule_is_replayed(func: PrimFunc) -> None:
    sch = split_by(5)(func)
    store = Store(record_of(sch))
    module = build(func, schedules=store)
    source = module.schedule_source
    assert (source.kind, source.reason, source.record, module.script, adds_one(module)) == (
        "exact",
        "measured",
        store.record,
        str(sch),
        True,
    )


def test_the_source_is_asked_once_by_workload_target_and_hardware(func: PrimFunc) -> None:
    store = Store()
    build(func, "llvm -mcpu=x86-64", store)
    assert store.asked == [(workload_key(func), Target.parse("llvm -mcpu=x86-64").key, detect().key)]


@pytest.mark.parametrize("strict", [False, True])
def test_without_a_record_the_default_says_for_what(func: PrimFunc, strict: bool) -> None:
    source = build(func, schedules=Store(), strict=strict).schedule_source
    assert (source.kind, source.reason) == (
        "default",
        f"no record for workload {workload_key(func)}, target {Target.parse('llvm').key}, "
        f"hardware {detect().key}",
    )


def test_an_unreachable_source_means_the_default_within_a_second(func: PrimFunc) -> None:
    store = Store(error=ConnectionRefusedError("nothing listens at port 1"))
    start = time.perf_counter()
    source = build(func, schedules=store).schedule_source
    assert (source.kind, source.reason, time.perf_counter() - start < 1) == (
        "default",
        "unreachable: nothing listens at port 1",
        True,
    )


def test_an_unreachable_source_is_an_error_when_strict(func: PrimFunc) -> None:
    with pytest.raises(ConnectionRefusedError, match="nothing listens"):
        build(func, schedules=Store(error=ConnectionRefusedError("nothing listens")), strict=True)


def test_an_error_of_the_source_that_is_no_lost_connection_is_not_hidden(func: PrimFunc) -> None:
    with pytest.raises(ZeroDivisionError):
        build(func, schedules=Store(error=ZeroDivisionError()))


STALE = {
    "a step that the program refuses": (
        '{"version":1,"steps":[{"do":"get_block","block":3,"out":["b0"]}]}',
        "get_block: there is no block 3; the blocks are B",
    ),
    "a trace that is none": ("[]", "a trace is an object with the fields 'version' and 'steps'"),
    "text that is no JSON": (
        "{",
        "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
    ),
}


@pytest.mark.parametrize("name", STALE)
def test_a_record_that_no_longer_applies_means_the_default_and_is_named(func: PrimFunc, name: str) -> None:
    trace, reason = STALE[name]
    module = build(func, schedules=Store(Record(trace)))
    source = module.schedule_source
    assert (source.kind, source.reason, source.record, adds_one(module)) == (
        "default",
        f"the best-known schedule no longer applies: {reason}; trial job_1.0 is retired",
        None,
        True,
    )


def test_a_record_that_no_longer_applies_is_an_error_when_strict(func: PrimFunc) -> None:
    with pytest.raises(BuildError, match="the best-known schedule no longer applies: "):
        build(func, schedules=Store(Record("[]")), strict=True)


def test_a_record_that_no_longer_compiles_means_the_default() -> None:
    a = te.placeholder((80, 80), "float32", name="A")
    func = te.create_prim_func([a, te.compute((80, 80), lambda i, j: a[i, j] + 1.0, name="B")])
    sch = Schedule(func)
    for loop in sch.get_loops(sch.get_block("B")):
        sch.unroll(loop)
    source = build(func, schedules=Store(record_of(sch))).schedule_source
    assert (source.kind, source.reason) == (
        "default",
        "the best-known schedule no longer applies: emit: the kernel needs more than 4000 instructions: "
        "unroll less; trial job_1.0 is retired",
    )


def test_a_default_schedule_without_code_gives_way_to_one_that_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a = te.placeholder((80, 80), "float32", name="A")
    func = te.create_prim_func([a, te.compute((80, 80), lambda i, j: a[i, j] + 1.0, name="B")])

    def schedules(func: PrimFunc, target: Target) -> Iterator[Schedule]:
        unrolled = Schedule(func)
        for loop in unrolled.get_loops(unrolled.get_block("B")):
            unrolled.unroll(loop)
        yield unrolled
        yield Schedule(func)

    monkeypatch.setattr("tilewright.compiler.space.default_schedules", schedules)
    module = build(func)
    x, out = np.ones((80, 80), "float32"), np.zeros((80, 80), "float32")
    module(x, out)
    np.testing.assert_array_equal(out, x + 1)
    assert module.schedule_source.kind == "default"
    assert "; a schedule before this one has no code: emit: the kernel needs" in module.schedule_source.reason


@pytest.mark.parametrize("element", ["B[i, 3]", "B[1, j]", "B[i, j // 2]"])
def test_a_block_that_does_not_walk_the_last_dimension_has_a_default_schedule(element: str) -> None:
    func = parse_script(
        "def f(A: float32[4, 8], B: float32[4, 8]):\n"
        "    for i in range(4):\n"
        "        for j in range(8):\n"
        f"            {element} = A[i, j]\n"
    )
    x = np.arange(32, dtype="float32").reshape(4, 8)
    out, expected = np.zeros((2, 4, 8), "float32")
    interpret.run(func, [x, expected])
    build(func)(x, out)
    np.testing.assert_array_equal(out, expected)


def test_an_unknown_target_is_refused(func: PrimFunc) -> None:
    with pytest.raises(TargetError, match="no code generator for 'gpu'; registered: c, llvm; to add one: "):
        build(func, "gpu")


def test_anything_else_than_a_program_is_refused() -> None:
    with pytest.raises(TypeError) as caught:
        build("matmul")  # type: ignore[arg-type]
    assert (
        str(caught.value) == "build takes a PrimFunc, a Schedule, an IRModule or a mapping of them, got str"
    )


def test_what_may_be_allowed_is_named(func: PrimFunc) -> None:
    with pytest.raises(ValueError, match="allow: 'anything' is none of same_family, transferred"):
        build(func, schedules=Store(), allow=("anything",))
    with pytest.raises(ValueError, match="not the string 'same_family'"):
        build(func, schedules=Store(), allow="same_family")


def test_a_schedule_that_does_not_apply_is_reported_by_name(func: PrimFunc) -> None:
    store = Store(Record('{"version": 9, "steps": []}'))
    reason = build(func, schedules=store).schedule_source.reason
    ((trial, said),) = store.told
    assert trial == "job_1.0"
    assert said.startswith("the best-known schedule no longer applies: ")
    assert "version 9 is not known; this program reads 1" in said
    assert reason == said + "; trial job_1.0 is retired"


def test_a_schedule_of_a_later_program_is_skipped_and_not_reported(func: PrimFunc) -> None:
    version = str(int(CODEGEN_VERSION) + 1)
    store = Store(Record('{"version": 9, "steps": []}', codegen_version=version))
    source = build(func, schedules=store).schedule_source
    assert (source.kind, store.told) == ("default", [])
    assert source.reason.endswith(
        f"; trial job_1.0 is skipped: made by version {version} of the code generator, "
        f"and this is {CODEGEN_VERSION}"
    )


def test_a_time_of_another_code_generator_is_named_as_such(func: PrimFunc) -> None:
    store = Store(replace(record_of(split_by(5)(func)), codegen_version="1"))
    source = build(func, schedules=store).schedule_source
    assert (source.kind, source.reason) == (
        "exact",
        f"measured; its time is of code generator version 1, and this is {CODEGEN_VERSION}",
    )


def test_a_pinned_default_is_built(func: PrimFunc) -> None:
    store = Store(Record("", kind="default", reason="the default schedule is pinned by ann: numbers drift"))
    source = build(func, schedules=store).schedule_source
    assert (source.kind, source.reason) == (
        "default",
        "the default schedule is pinned by ann: numbers drift",
    )
