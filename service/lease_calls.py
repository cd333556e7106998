"""What the lease calls say and answer, between the worker protocol and the store's records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..db.fleet_records import Lease as LeaseRecord
from ..db.fleet_records import LeaseItem, LeaseState
from ..db.records import Settlement
from ..measure.messages import (
    MAX_BATCH,
    PROTOCOL,
    Failure,
    Lease,
    LeaseUpdate,
    Limits,
    MeasureInput,
    MeasureResult,
    MessageError,
)
from .errors import ProtocolRefused
from .settings import Settings
from .traces import traceparent

# A lease that is lost has no time left, and the protocol has no word for zero.
_NO_TIME = 0.001
_TRACED_PROTOCOL = 2
"""The first one whose lease items may carry a trace."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The worker and session that every lease call names, beside the fields of the call itself."""

    worker: str
    session: str
    fields: Mapping[str, Any]

    @classmethod
    def of(cls, body: Mapping[str, Any], *names: str) -> Caller:
        """Reads a call whose own fields are `names`, all of them needed. Raises MessageError,
        ProtocolRefused."""
        check_protocol(body)
        read_fields(body, "worker", "session", *names)
        return cls(text(body, "worker"), text(body, "session"), body)


def read_fields(body: Mapping[str, Any], *names: str) -> None:
    """Raises MessageError unless the fields of a call are these and the protocol, all of them."""
    known = ("protocol", *names)
    for name in body:
        if name not in known:
            raise MessageError(f"unknown field; known fields: {', '.join(known)}", _pointer(name))
    for name in known:
        if name not in body:
            raise MessageError("missing", _pointer(name))


def check_protocol(body: Mapping[str, Any]) -> None:
    """Raises ProtocolRefused unless this server speaks the protocol of the call."""
    said = body.get("protocol")
    if not isinstance(said, int) or isinstance(said, bool):
        raise MessageError("must be the protocol's integer", "/protocol")
    # Workers and servers of two neighbouring versions work together, so that both can be upgraded in turn.
    spoken = range(max(1, PROTOCOL - 1), PROTOCOL + 1)
    if said not in spoken:
        speaks = " and ".join(map(str, spoken))
        raise ProtocolRefused(
            f"this server speaks protocol {speaks} and the worker {said}: install the server's version of "
            "tilewright on the worker's machine",
            headers={"Upgrade": f"tilewright/{PROTOCOL}"},
        )


def text(body: Mapping[str, Any], name: str) -> str:
    value = body[name]
    if not isinstance(value, str) or not 0 < len(value) <= 128:
        raise MessageError("expected a string of 1 to 128 characters", _pointer(name))
    return value


def integer(body: Mapping[str, Any], name: str, low: int, high: int) -> int:
    value = body[name]
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise MessageError(f"expected an integer of {low} to {high}", _pointer(name))
    return value


def seconds(body: Mapping[str, Any], name: str) -> float:
    value = body[name]
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 86_400:
        raise MessageError("expected seconds of 0 to 86400", _pointer(name))
    return float(value)


def results(body: Mapping[str, Any]) -> list[MeasureResult]:
    """The results of a settle call. Raises MessageError with a pointer to the wrong one."""
    value = body["results"]
    if not isinstance(value, list) or len(value) > MAX_BATCH:
        raise MessageError(f"expected an array of at most {MAX_BATCH} results", "/results")
    return [MeasureResult.from_json(result, f"/results/{i}") for i, result in enumerate(value)]


def settlement(result: MeasureResult) -> Settlement:
    """A result as the store keeps it."""
    failure = result.failure
    return Settlement(
        trial=result.item,
        attempt=result.attempt,
        seconds=result.seconds,
        samples=tuple(result.samples),
        censored=result.censored,
        error=result.error,
        failure_kind=None if failure is None else failure.kind,
        failure_message="" if failure is None else failure.message,
        failure_detail=failure_detail(failure),
        build_seconds=result.build_seconds,
        wall_seconds=result.wall_seconds,
        disturbed=result.disturbed,
        calls=result.calls if failure is None else None,
        cache=result.cache if failure is None else None,
        baseline=tuple(result.baseline),
        disturbance=result.disturbance,
    )


def outcome_of(said: Settlement) -> str:
    """What a trial with this result becomes."""
    return said.failure_kind or ("censored" if said.censored else "ok")


def failure_detail(failure: Failure | None) -> str:
    """What a failure says beside its kind and message, as JSON text."""
    if failure is None:
        return "{}"
    detail = {
        "limit": failure.limit,
        "elapsed": failure.elapsed,
        "last_words": failure.last_words,
        "of_workload": failure.of_workload or None,
    }
    return json.dumps({k: v for k, v in detail.items() if v not in (None, "")})


def lease_message(lease: LeaseRecord, settings: Settings) -> Lease:
    """A granted lease as the worker reads it."""
    limits = Limits(settings.build_seconds, settings.run_seconds, settings.memory_bytes)
    return Lease(
        lease=lease.id,
        ttl_seconds=lease.ttl,
        renew_seconds=min(settings.renew_seconds, lease.ttl / 2),
        items=tuple(_item(item, limits) for item in lease.items),
    )


def in_protocol(lease: dict[str, Any], protocol: int) -> dict[str, Any]:
    """A lease's JSON without what workers of this protocol would refuse as unknown."""
    if protocol < _TRACED_PROTOCOL:
        for item in lease["items"]:
            item.pop("traceparent", None)
    return lease


def update_message(state: LeaseState) -> LeaseUpdate:
    return LeaseUpdate(
        cancelled=tuple(state.cancelled), drain=state.drain, ttl_seconds=max(state.ttl, _NO_TIME)
    )


def _item(item: LeaseItem, limits: Limits) -> MeasureInput:
    return MeasureInput(
        item=item.trial,
        attempt=item.attempt,
        workload=json.loads(item.program),
        target=json.loads(item.description),
        trace=json.loads(item.trace),
        input_seed=item.input_seed,
        limits=limits,
        best_seconds=item.best_seconds,
        traceparent=traceparent(item.trace_id),
    )


def _pointer(name: object) -> str:
    return f"/{str(name).replace('~', '~0').replace('/', '~1')}"
