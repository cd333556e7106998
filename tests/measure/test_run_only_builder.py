"""Builders: what they make, what they say of what cannot be made, and how they end."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from dataclasses import replace as changed
from pathlib import Path
from typing import Any

import pytest
from own_processes import own_children

from tilewright.compiler import topi
from tilewright.compiler.codegen.dims import params_of
from tilewright.compiler.codegen.standalone import Layout, standalone_program
from tilewright.compiler.ir import to_json
from tilewright.compiler.schedule import Schedule
from tilewright.compiler.target import Target
from tilewright.measure.exits import Exit
from tilewright.measure.messages import Failure, LeaseLost, Limits, SourceUnreachable, Unauthorized
from tilewright.measure.patience import Patience
from tilewright.measure.run_only import builder
from tilewright.measure.run_only.messages import BuildAnswer, BuildInput, BuildLease
from tilewright.measure.run_only.workbench import Workbench

FUNC = topi.create({"op": "matmul", "m": 16, "n": 16, "k": 16})
TARGET = Target.parse("llvm -mcpu=cortex-a53")
PLENTY = 1 << 26


def tiled(factor: int = 4) -> dict[str, Any]:
    sch = Schedule(FUNC)
    i, *_ = sch.get_loops(sch.get_block("C"))
    sch.split(i, [None, factor])
    return sch.trace.to_json()


def item(kind: str = "program", **more: Any) -> BuildInput:
    values = (
        {"trace": tiled(), "target": TARGET.to_json()} if kind == "program" else {"trace": {}, "target": {}}
    )
    return BuildInput("build_1", 1, kind, to_json(FUNC), **{**values, **more})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def bench() -> Iterator[Workbench]:
    """One for all tests: each shows that it outlived the one before."""
    with Workbench() as made:
        yield made
    assert own_children(recursive=True) == []


def made(bench: Workbench, what: BuildInput, folder: Path, most: int = PLENTY) -> Failure | bytes:
    path = folder / "artifact"
    failure, seconds = bench.make(what, path, most)
    assert seconds > 0
    return path.read_bytes() if failure is None else failure


def test_a_program_is_the_one_that_the_compiler_makes(bench: Workbench, tmp_path: Path) -> None:
    sch = Schedule(FUNC)
    i, *_ = sch.get_loops(sch.get_block("C"))
    sch.split(i, [None, 4])
    assert made(bench, item(), tmp_path) == standalone_program(sch.func, TARGET)


def test_data_is_the_same_wherever_it_is_made(bench: Workbench, tmp_path: Path) -> None:
    one, other = made(bench, item("data"), tmp_path), made(bench, item("data"), tmp_path)
    assert isinstance(one, bytes) and one == other
    assert len(one) == Layout.of(params_of(FUNC)).bytes
    assert made(bench, item("data", input_seed=1), tmp_path) != one


@pytest.mark.parametrize(
    ("more", "kind", "message"),
    [
        ({"trace": {"version": 99}}, "build_error", ""),
        ({"target": {"kind": "llvm", "mcpu": "no-such"}}, "build_error", "no-such"),
        (
            {"target": Target.parse("llvm -mcpu=cortex-a53 -num-threads=2").to_json()},
            "build_error",
            "one thread",
        ),
        ({"limits": Limits(memory_bytes=1000)}, "build_error", "the limit is 1000"),
        ({"limits": Limits(build_seconds=1e-4)}, "build_timeout", "longer than its limit of 0.0001 s"),
    ],
)
def test_what_cannot_be_made_is_a_typed_failure(
    bench: Workbench, tmp_path: Path, more: dict[str, Any], kind: str, message: str
) -> None:
    failure = made(bench, item(**more), tmp_path)
    assert isinstance(failure, Failure)
    assert failure.kind == kind and message in failure.message


def test_data_beyond_the_memory_limit_is_the_workloads_own_failure(bench: Workbench, tmp_path: Path) -> None:
    large = to_json(topi.create({"op": "matmul", "m": 30_000, "n": 30_000, "k": 8}))
    failure = made(bench, changed(item("data"), workload=large), tmp_path)
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.of_workload) == ("build_error", True)


def test_an_artifact_beyond_its_limit_is_a_failure(bench: Workbench, tmp_path: Path) -> None:
    failure = made(bench, item("data"), tmp_path, most=1000)
    assert isinstance(failure, Failure)
    assert failure.message == "its data has 6 KiB, and the limit is 1000 bytes"
    assert failure.of_workload


def test_a_building_process_that_died_is_replaced(bench: Workbench, tmp_path: Path) -> None:
    made(bench, item(), tmp_path)
    for child in own_children():
        child.kill()
        child.wait()
    assert isinstance(made(bench, item(), tmp_path), bytes)


@dataclass
class FakeBuilds:
    """A BuildSource that grants `leases` in turn, and ends the builder when there are no more."""

    leases: list[list[BuildInput]]
    stop: Callable[[], None] = lambda: None
    faults: dict[str, list[Exception]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    put_bytes: dict[str, bytes] = field(default_factory=dict)
    answers: list[BuildAnswer] = field(default_factory=list)
    renewed: threading.Event = field(default_factory=threading.Event)

    def claim(self, max_items: int, wait_seconds: float) -> BuildLease | None:
        self._called("claim")
        if not self.leases:
            self.stop()
            return None
        return BuildLease(30.0, 0.02, PLENTY, tuple(self.leases.pop(0)))

    def renew(self, builds: list[tuple[str, int]]) -> None:
        self.renewed.set()

    def put(self, sha256: str, path: Path) -> None:
        self._called("put")
        self.put_bytes[sha256] = path.read_bytes()

    def settle(self, answer: BuildAnswer) -> None:
        self._called("settle")
        self.answers.append(answer)

    def release(self) -> None:
        self._called("release")

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if faults := self.faults.get(name):
            raise faults.pop(0)


@dataclass
class FakeBench:
    """Makes its item's name, once `before` has been called."""

    before: Callable[[], None] = lambda: None
    failure: Failure | None = None
    cancelled: int = 0

    def make(self, item: BuildInput, path: Path, most_bytes: int) -> tuple[Failure | None, float]:
        self.before()
        path.write_bytes(item.build.encode())
        return self.failure, 0.5

    def cancel(self) -> None:
        self.cancelled += 1


def builds(*names: str) -> list[BuildInput]:
    return [changed(item("data"), build=name) for name in names]


def run(source: FakeBuilds, bench: FakeBench | None = None) -> Exit:
    """The builder in this thread, ended by a signal to this process."""
    source.stop = lambda: os.kill(os.getpid(), 15)
    brief = Patience(attach=0.1, outage=0.1, shortest_pause=0.01)
    return builder.run(source, bench or FakeBench(), patience=brief, say=lambda line: None)


def test_what_was_made_is_put_before_it_is_settled() -> None:
    source = FakeBuilds([builds("a", "b")])
    assert run(source) is Exit.DRAINED
    digests = {name: hashlib.sha256(name.encode()).hexdigest() for name in "ab"}
    assert source.calls == ["claim", "put", "settle", "put", "settle", "claim"]
    assert source.put_bytes == {digests[name]: name.encode() for name in "ab"}
    assert source.answers == [BuildAnswer(name, 1, digests[name], build_seconds=0.5) for name in "ab"]


def test_a_failure_is_settled_and_nothing_put() -> None:
    failure = Failure("build_error", "no code")
    source = FakeBuilds([builds("a")])
    run(source, FakeBench(failure=failure))
    assert source.calls == ["claim", "settle", "claim"]
    assert source.answers == [BuildAnswer("a", 1, failure=failure, build_seconds=0.5)]


def test_builds_are_renewed_while_one_is_made() -> None:
    source = FakeBuilds([builds("a")])
    run(source, FakeBench(before=lambda: source.renewed.wait(10) or pytest.fail("not renewed")))
    assert source.renewed.is_set()


def test_sigterm_finishes_what_is_being_made_and_gives_the_rest_back() -> None:
    source = FakeBuilds([builds("a", "b", "c")])
    assert run(source, FakeBench(before=lambda: os.kill(os.getpid(), 15))) is Exit.DRAINED
    assert source.calls == ["claim", "put", "settle", "release"]


def test_a_second_sigterm_gives_up_what_is_being_made() -> None:
    source, bench = FakeBuilds([builds("a", "b")]), FakeBench()

    def twice() -> None:
        os.kill(os.getpid(), 15)
        os.kill(os.getpid(), 15)

    bench.before = twice
    run(source, bench)
    assert bench.cancelled == 1


def test_a_build_that_went_to_another_does_not_end_a_builder() -> None:
    source = FakeBuilds([builds("a", "b")], faults={"settle": [LeaseLost("granted again")]})
    assert run(source) is Exit.DRAINED
    assert [answer.build for answer in source.answers] == ["b"]


def test_an_outage_is_borne_and_a_wrong_token_is_not() -> None:
    source = FakeBuilds([builds("a")], faults={"put": [SourceUnreachable("down")]})
    assert run(source) is Exit.DRAINED
    assert source.calls == ["claim", "put", "put", "settle", "claim"]
    refused = FakeBuilds([], faults={"claim": [Unauthorized("no")]})
    assert run(refused) is Exit.UNAUTHORIZED
    gone = FakeBuilds([], faults={"claim": [SourceUnreachable("down")] * 100})
    assert run(gone) is Exit.UNREACHABLE
