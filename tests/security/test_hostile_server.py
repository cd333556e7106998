"""A worker proves again what a server sends it: a server that lies cannot make it run what is unproved, nor
use more than its machine has."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from typing import Any

import pytest
from fake_source import HELLO, FakeSource
from hostile_programs import ZERO, doubling, reading

from tilewright import topi
from tilewright.compiler.ir import to_json
from tilewright.compiler.target import Target
from tilewright.measure import worker
from tilewright.measure.messages import Lease, Limits, MeasureInput, MeasureResult, MessageError
from tilewright.measure.runner import Runner

GOOD = to_json(topi.create({"op": "matmul", "m": 8, "n": 8, "k": 8, "dtype": "float32"}))
TARGET = Target.parse("llvm").to_json()
NOTHING: dict[str, Any] = {"version": 1, "steps": []}
BLOCK = {"do": "get_block", "block": 0, "out": ["b"]}
LOOPS = {"do": "get_loops", "block": "b", "out": ["l0", "l1", "l2"]}


def sent(name: str, workload: Any = GOOD, trace: Any = NOTHING, target: Any = TARGET) -> MeasureInput:
    return MeasureInput(name, 1, workload, target, trace, 0, Limits(10.0, 5.0, 1 << 30))


LOOPS_WITHOUT_END = [
    {"do": "split", "loop": f"x{n}" if n else "l0", "factors": [None, 1], "out": [f"x{n + 1}", f"y{n}"]}
    for n in range(200)
]
HOSTILE = {
    "a read out of bounds": sent("1", reading([[1, 2], [100]])),
    "a call": sent("2", reading(None, value=["call", "system", ZERO])),
    "memory without end": sent("3", reading([[1, 2]], extent=2**50)),
    "no program": sent("4", {"pickle": "gASVBQAAAAAAAACMAWGULg=="}),
    "a program of another format": sent("5", {**GOOD, "tilewright": 2}),
    "a step that is none": sent("6", trace={"version": 1, "steps": [{"do": "exec", "code": "1"}]}),
    "loops without end": sent("7", trace={"version": 1, "steps": [BLOCK, LOOPS, *LOOPS_WITHOUT_END]}),
    "a target that is none": sent("8", target={"kind": "../../x"}),
    "a processor's feature that injects": sent("9", target={**TARGET, "mcpu": 'x" "attributes"="evil'}),
    "a proof without end": sent(
        "10",
        reading([[1, ["min", [[1, 18 + 2 * k]], [[1, 19 + 2 * k]]]] for k in range(9)], [3] * 18, extent=9),
    ),
}


@pytest.fixture(scope="module")
def results() -> dict[str, MeasureResult]:
    """What a worker answers to a lease of all of these, and then to an honest one."""
    source = FakeSource(leases=[list(HOSTILE.values()), [sent("honest")]])
    source.when_empty = lambda: os.kill(os.getpid(), signal.SIGTERM)
    with Runner() as runner:
        assert worker.run(source, runner, HELLO, batch=64, say=lambda line: None) == worker.Exit.DRAINED
    return {result.item: result for result in source.settled}


@pytest.mark.parametrize(
    ("name", "message"),
    {
        "a read out of bounds": "block 'p1' reads 'p0' at v2 + 100 in dimension 0, which may leave [0, 16)",
        "a call": "unknown operation 'call'; known: abs, add",
        "memory without end": f"the buffers hold {2**52 + 160} bytes; at most {2**34} are allowed",
        "no program": "unknown field 'pickle'; known: allocs, body",
        "a program of another format": "format 2 is not known; this program reads 1",
        "a step that is none": "unknown step 'exec'; known: get_block",
        "loops without end": "after this step loops are nested 101 deep; at most 100 may be",
        "a target that is none": "no code generator for '../../x'",
        "a processor's feature that injects": "target llvm: unknown mcpu",
        "a proof without end": "the indices of the program take too long to prove in bounds",
    }.items(),
)
def test_it_is_not_built_and_the_worker_says_why(
    results: dict[str, MeasureResult], name: str, message: str
) -> None:
    failure = results[HOSTILE[name].item].failure
    assert failure is not None
    assert (failure.kind, failure.message[: len(message)]) == ("build_error", message)


def test_the_worker_goes_on(results: dict[str, MeasureResult]) -> None:
    honest = results["honest"]
    assert honest.failure is None
    assert len(results) == len(HOSTILE) + 1


@pytest.mark.parametrize(
    "change",
    [
        {"memory_bytes": -1},
        {"memory_bytes": 2**60},
        {"run_seconds": 1e9},
        {"run_seconds": float("inf")},
        {"build_seconds": float("nan")},
        {"build_seconds": 0},
    ],
)
def test_limits_that_are_none_are_refused_with_the_lease(change: dict[str, Any]) -> None:
    lease = Lease("l", 30.0, 10.0, (sent("1"),)).to_json()
    lease["items"][0]["limits"].update(change)
    with pytest.raises(MessageError):
        Lease.from_json(lease)


def test_a_lease_has_no_more_items_than_the_protocol_allows() -> None:
    lease = Lease("l", 30.0, 10.0, tuple(replace(sent("1"), item=str(n)) for n in range(65)))
    with pytest.raises(MessageError, match="at most 64 entries, got 65"):
        Lease.from_json(lease.to_json())


def test_values_that_double_stay_within_the_limits_of_their_child() -> None:
    steps: list[Any] = []
    for n in range(30):
        steps += [{**BLOCK, "out": [f"b{n}"]}, {"do": "compute_inline", "block": f"b{n}"}]
    with Runner() as runner:
        failure = runner.measure(sent("1", doubling(40), {"version": 1, "steps": steps})).failure
    assert failure is not None
    assert (failure.kind, "at most 20000 are allowed" in failure.message) == ("constraint", True)
