"""What the calls of builders and of devices that only run say, between their messages and the store's
records."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ..db.build_records import BuildItem, BuildResult
from ..db.fleet_records import Lease as LeaseRecord
from ..db.fleet_records import LeaseItem, Worker
from ..measure.messages import Limits
from ..measure.run_only.messages import (
    ArtifactRef,
    BuildAnswer,
    BuildInput,
    BuildLease,
    RunInput,
    RunLease,
)
from .errors import AttachAgain
from .lease_calls import failure_detail
from .settings import Settings
from .traces import traceparent

BUILD_SECONDS = 60.0
"""Time to live of a build that is not renewed."""


def limits_of(settings: Settings) -> Limits:
    return Limits(settings.build_seconds, settings.run_seconds, settings.memory_bytes)


def build_lease(items: Sequence[BuildItem], settings: Settings) -> BuildLease:
    """Granted builds as the builder reads them."""
    return BuildLease(
        ttl_seconds=BUILD_SECONDS,
        renew_seconds=BUILD_SECONDS / 3,
        most_bytes=settings.max_artifact_bytes,
        items=tuple(_build_input(item, limits_of(settings)) for item in items),
    )


def build_result(answer: BuildAnswer) -> BuildResult:
    """A builder's answer as the store keeps it."""
    failure = answer.failure
    if failure is None:
        return BuildResult(artifact=answer.artifact, build_seconds=answer.build_seconds)
    return BuildResult(
        failure_kind=failure.kind,
        failure_message=failure.message,
        failure_detail=failure_detail(failure),
        build_seconds=answer.build_seconds,
    )


def check_codegen(worker: Worker, codegen: str) -> None:
    """Raises AttachAgain for a device that attached when its builders had another code generator: its results
    would count as those of that one."""
    if worker.run_only and worker.codegen_version != codegen:
        raise AttachAgain(
            f"the code generator has version {codegen} now, and had {worker.codegen_version} when worker "
            f"{worker.id} attached"
        )


def run_lease(lease: LeaseRecord, settings: Settings) -> RunLease:
    """A granted lease as a device that only runs reads it."""
    return RunLease(
        lease=lease.id,
        ttl_seconds=lease.ttl,
        renew_seconds=min(settings.renew_seconds, lease.ttl / 2),
        items=tuple(_run_input(item, limits_of(settings)) for item in lease.items),
    )


def _build_input(item: BuildItem, limits: Limits) -> BuildInput:
    return BuildInput(
        build=item.build,
        attempt=item.attempt,
        kind=item.kind,
        workload=json.loads(item.program),
        target=json.loads(item.description or "{}"),
        trace=json.loads(item.trace or "{}"),
        input_seed=item.input_seed,
        limits=limits,
    )


def _run_input(item: LeaseItem, limits: Limits) -> RunInput:
    return RunInput(
        item=item.trial,
        attempt=item.attempt,
        program=_artifact(item.program_sha256, item.program_bytes),
        data=_artifact(item.data_sha256, item.data_bytes),
        limits=limits,
        best_seconds=item.best_seconds,
        traceparent=traceparent(item.trace_id),
    )


def _artifact(sha256: str | None, size: int | None) -> ArtifactRef:
    assert sha256 is not None and size is not None, "only trials with artifacts are granted to such a device"
    return ArtifactRef(sha256, f"/v1/artifacts/{sha256}", size)
