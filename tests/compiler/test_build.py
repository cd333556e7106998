"""build: programs and schedules made callable, and how the schedule was found."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest

from tilewright.compiler import interpret, te
from tilewright.compiler.build import build
from tilewright.compiler.codegen.errors import BuildError
from tilewright.compiler.ir import PrimFunc, parse_script, workload_key
from tilewright.compiler.runtime import Module
from tilewright.compiler.schedule import Schedule
from tilewright.compiler.schedule_source import KnownSchedule
from tilewright.compiler.target import Target, TargetError, detect


@dataclass(frozen=True)
class Record:
    """A best-known schedule."""

    trace: str
    seconds: float = 1e-3
    kind: str = "exact"
    reason: str = "measured"


@dataclass
class Store:
    """A schedule source that answers with one record and notes what it was asked."""

    record: Record | None = None
    error: Exception | None = None
    asked: list[tuple[str, str, str]] = field(default_factory=list)

    def best(self, workload: str, target: str, hardware: str) -> KnownSchedule | None:
        self.asked.append((workload, target, hardware))
        if self.error is not None:
            raise self.error
        return self.record


@pytest.fixture
def func() -> PrimFunc:
    a = te.placeholder((12, 20), "float32", name="A")
    return te.create_prim_func([a, te.compute((12, 20), lambda i, j: a[i, j] + 1.0, name="B")], name="plus")


def split_by(n: int) -> Callable[[PrimFunc], Schedule]:
    """The rows split by n."""

    def schedule(func: PrimFunc) -> Schedule:
        sch = Schedule(func)
        sch.split(sch.get_loops(sch.get_block("B"))[0], [None, n])
        return sch

    return schedule


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
        f"the best-known schedule no longer applies: {reason}",
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
        "unroll less",
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
