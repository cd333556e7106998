"""build: programs and schedules made callable, and how the schedule was found."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from tilewright.compiler import CODEGEN_VERSION, interpret, te
from tilewright.compiler.build import build
from tilewright.compiler.codegen.errors import BuildError
from tilewright.compiler.ir import PrimFunc, parse_script, to_json, workload_key
from tilewright.compiler.runtime import Module
from tilewright.compiler.schedule import Schedule
from tilewright.compiler.space import default_schedule
from tilewright.compiler.target import Target, TargetError, detect
from tilewright.compiler.target.features import known_features


@dataclass(frozen=True)
class Record:
    """A best-known schedule."""

    trace: str
    seconds: float = 1e-3
    kind: str = "exact"
    reason: str = "measured"
    trial: str = "job_1.0"
    codegen_version: str = CODEGEN_VERSION


@dataclass(frozen=True)
class Elsewhere(Record):
    """The best-known schedule of another key."""

    workload: str = ""
    target: str = ""
    hardware: str = "elsewhere"


@dataclass(frozen=True)
class Near:
    schedule: Elsewhere
    program: str
    description: str
    facts: str


@dataclass
class Store:
    """A schedule source that answers with one record and notes what it was asked and told."""

    record: Record | None = None
    error: Exception | None = None
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    others: list[Near] = field(default_factory=list)
    told: list[tuple[str, str]] = field(default_factory=list)

    def best(self, workload: str, target: str, hardware: str, freeze: str | None = None) -> Record | None:
        self.asked.append((workload, target, hardware))
        if self.error is not None:
            raise self.error
        return self.record

    def nearby(self, workload: str, structure: str, limit: int = 32) -> list[Near]:
        return self.others

    def report(self, trial: str, reason: str) -> str:
        self.told.append((trial, reason))
        return "retired"


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


def plus(rows: int) -> PrimFunc:
    a = te.placeholder((rows, 20), "float32", name="A")
    return te.create_prim_func([a, te.compute((rows, 20), lambda i, j: a[i, j] + 1.0, name="B")], name="plus")


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
