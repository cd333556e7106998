from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from tilewright.measure.messages import (
    FAILURE_KINDS,
    Failure,
    Lease,
    LeaseLost,
    LeaseUpdate,
    Limits,
    MeasureInput,
    MeasureResult,
    MessageError,
    NotATilewright,
    Registration,
    SourceUnreachable,
    WorkerHello,
)

INPUT = MeasureInput(
    "t1", 2, {"blocks": [1]}, {"kind": "llvm"}, {"steps": []}, 7, Limits(1.5, 2.5, 4096), 0.25
)
FAILURE = Failure("run_timeout", "too long", 1.0, 1.25, "last\nwords")
SUCCESS = MeasureResult("t1", 2, 0.5, (0.75, 0.5), True, 0.125, None, 0.1, 0.2)
HELLO = WorkerHello(
    1, "rpi4-07", "0123456789abcdef", "a" * 64, {"cores": 4}, {"llvm": "22.1"}, {"board": "x"}
)

MESSAGES = [
    Limits(),
    INPUT,
    FAILURE,
    SUCCESS,
    MeasureResult("t1", 2, failure=FAILURE),
    HELLO,
    Registration("worker_1", 30.0, 10.0, 20.0),
    Lease("lease_1", 30.0, 10.0, (INPUT, INPUT)),
    LeaseUpdate(("t1", "t2"), True, 15.0),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: type(m).__name__)
def test_a_message_survives_the_wire(message: Any) -> None:
    assert type(message).from_json(json.loads(json.dumps(message.to_json()))) == message


def test_a_result_is_written_with_every_field() -> None:
    assert MeasureResult("t1", 2, failure=FAILURE).to_json() == {
        "item": "t1",
        "attempt": 2,
        "seconds": None,
        "samples": [],
        "censored": False,
        "error": None,
        "failure": {
            "kind": "run_timeout",
            "message": "too long",
            "limit": 1.0,
            "elapsed": 1.25,
            "last_words": "last\nwords",
            "of_workload": False,
        },
        "build_seconds": 0.0,
        "wall_seconds": 0.0,
        "disturbed": False,
        "calls": 1,
        "cache": "hot",
        "baseline": [],
        "disturbance": "",
    }


def test_fields_with_a_default_may_be_left_out() -> None:
    short = {"item": "t", "attempt": 0, "workload": {}, "target": {}, "trace": {}}
    assert MeasureInput.from_json(short) == MeasureInput("t", 0, {}, {}, {})


def _with(message: Any, /, **changes: Any) -> tuple[type[Any], Any]:
    return type(message), {**message.to_json(), **changes}


@pytest.mark.parametrize(
    ("kind_and_json", "words"),
    [
        ((Limits, []), "(the message itself): expected an object, got an array"),
        (
            _with(Limits(), seconds=1),
            "/seconds: unknown field; known fields: build_seconds, run_seconds, memory_bytes",
        ),
        ((MeasureInput, {"item": "t"}), "/attempt: missing"),
        (_with(INPUT, item=3), "/item: expected a string, got the number 3"),
        (_with(INPUT, item=""), "/item: must have at least 1 character, got 0"),
        (_with(INPUT, attempt=True), "/attempt: expected an integer, got true or false"),
        (_with(INPUT, attempt=1.0), "/attempt: expected an integer, got the number 1.0"),
        (_with(INPUT, attempt=-1), "/attempt: must be at least 0, got -1"),
        (
            _with(INPUT, input_seed=2**53),
            "/input_seed: must be an integer of at most 9007199254740991 in magnitude",
        ),
        (_with(INPUT, workload=None), "/workload: expected an object, got null"),
        (_with(INPUT, limits={"run_seconds": 0}), "/limits/run_seconds: must be above 0, got 0.0"),
        (_with(INPUT, best_seconds="1"), "/best_seconds: expected a number, got a string"),
        (_with(SUCCESS, seconds=float("nan")), "/seconds: must be a finite number"),
        (_with(SUCCESS, seconds=float("inf")), "/seconds: must be a finite number"),
        (_with(SUCCESS, seconds=10**400), "/seconds: must be a finite number"),
        (_with(SUCCESS, seconds=0), "/seconds: must be above 0, got 0.0"),
        (_with(SUCCESS, samples=[0.5, -1]), "/samples/1: must be above 0, got -1.0"),
        (_with(SUCCESS, samples=[0.5] * 1001), "/samples: must have at most 1000 entries, got 1001"),
        (_with(SUCCESS, samples=[]), "(the message itself): seconds without the samples they come from"),
        (_with(SUCCESS, censored=0), "/censored: expected true or false, got the number 0"),
        (
            _with(SUCCESS, failure=FAILURE.to_json()),
            "(the message itself): a result has either seconds or a failure",
        ),
        (_with(SUCCESS, seconds=None), "(the message itself): a result has either seconds or a failure"),
        (
            _with(FAILURE, kind="exploded"),
            f"/kind: expected one of {', '.join(FAILURE_KINDS)}, got 'exploded'",
        ),
        (_with(FAILURE, message="x" * 4001), "/message: must have at most 4000 characters, got 4001"),
        (_with(HELLO, versions={"a/b~c": 1}), "/versions/a~1b~0c: expected a string, got the number 1"),
        (_with(HELLO, hardware_key="short"), "/hardware_key: must have at least 64 characters, got 5"),
        (_with(Lease("l", 1.0, 1.0, (INPUT,) * 65)), "/items: must have at most 64 entries, got 65"),
        (
            (
                Lease,
                {"lease": "l", "ttl_seconds": 1, "renew_seconds": 1, "items": [INPUT.to_json(), {"item": 0}]},
            ),
            "/items/1/item: expected a string, got the number 0",
        ),
    ],
)
def test_a_message_that_is_not_right_is_refused_with_its_place(
    kind_and_json: tuple[type[Any], Any], words: str
) -> None:
    kind, obj = kind_and_json
    with pytest.raises(MessageError) as caught:
        kind.from_json(obj)
    assert str(caught.value) == words


def test_a_pointer_starts_where_the_message_stands() -> None:
    with pytest.raises(MessageError) as caught:
        Limits.from_json({"run_seconds": "1"}, "/results/3/limits")
    assert caught.value.pointer == "/results/3/limits/run_seconds"


@pytest.mark.parametrize(
    "error", [MessageError("wrong", "/a"), NotATilewright("nginx", "http://x"), LeaseLost("gone")], ids=repr
)
def test_errors_survive_pickling(error: Exception) -> None:
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_a_source_out_of_reach_is_a_connection_error() -> None:
    assert issubclass(SourceUnreachable, ConnectionError)


def test_a_stranger_is_named_with_its_address() -> None:
    error = NotATilewright("an SSH server", "http://10.0.0.1:22")
    assert str(error) == "expected a tilewright service at http://10.0.0.1:22, found an SSH server"
