"""What devices that only run, their builders and the service say to each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

from ..messages import Duration, Failure, Identifier, Limits, Positive
from ..wire import MAX_INTEGER, Bound, Message, Size

__all__ = [
    "MAX_BUILDS",
    "ArtifactRef",
    "BuildAnswer",
    "BuildInput",
    "BuildLease",
    "BuildSource",
    "RunInput",
    "RunLease",
]

MAX_BUILDS = 16
"""The most builds that are granted at once."""

Digest = Annotated[str, Size(64, least=64)]


@dataclass(frozen=True, slots=True)
class ArtifactRef(Message):
    """Bytes by their SHA-256 in hexadecimal digits. `url` is a path on the server."""

    sha256: Digest
    url: Annotated[str, Size(200)]
    bytes: Annotated[int, Bound(0, MAX_INTEGER)]


@dataclass(frozen=True, slots=True)
class RunInput(Message):
    """A MeasureInput for a device that only runs: `program` (compiler/codegen/standalone) on `data`."""

    item: Identifier
    attempt: Annotated[int, Bound(0)]
    program: ArtifactRef
    data: ArtifactRef
    limits: Limits = field(default_factory=Limits)
    best_seconds: Positive | None = None
    traceparent: Annotated[str, Size(64)] | None = None


@dataclass(frozen=True, slots=True)
class RunLease(Message):
    """The Lease of a device that only runs."""

    lease: Identifier
    ttl_seconds: Positive
    renew_seconds: Positive
    items: Annotated[tuple[RunInput, ...], Size(64)]


@dataclass(frozen=True, slots=True)
class BuildInput(Message):
    """An artifact to make: the `program` of a trace for a target, or the `data` of a workload and a seed,
    which has neither. `attempt` is the fencing token of this grant."""

    build: Identifier
    attempt: Annotated[int, Bound(1)]
    kind: Literal["program", "data"]
    workload: dict[str, Any]
    target: dict[str, Any]
    trace: dict[str, Any]
    input_seed: Annotated[int, Bound(0, MAX_INTEGER)] = 0
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class BuildLease(Message):
    """Builds granted for `ttl_seconds`, to be renewed every `renew_seconds`; an artifact may have at most
    `most_bytes`."""

    ttl_seconds: Positive
    renew_seconds: Positive
    most_bytes: Annotated[int, Bound(1)]
    items: Annotated[tuple[BuildInput, ...], Size(MAX_BUILDS)]


@dataclass(frozen=True, slots=True)
class BuildAnswer(Message):
    """The SHA-256 of what was made, and was put before, or why nothing was; never both."""

    build: Identifier
    attempt: Annotated[int, Bound(1)]
    artifact: Digest | None = None
    failure: Failure | None = None
    build_seconds: Duration = 0.0

    def refusal(self) -> str | None:
        if (self.artifact is None) == (self.failure is None):
            return "an answer has either an artifact or a failure"
        return None


class BuildSource(Protocol):
    """Where a builder's work comes from; its calls raise the SourceErrors that a JobSource's do, and may come
    from two threads."""

    def claim(self, max_items: int, wait_seconds: float) -> BuildLease | None:
        """Builds that devices wait for, waiting up to `wait_seconds` for one; None when there is none."""

    def renew(self, builds: list[tuple[str, int]]) -> None:
        """Keep these grants (build and attempt) alive."""

    def put(self, sha256: str, path: Path) -> None:
        """Hand in the bytes of an artifact. Twice is fine."""

    def settle(self, answer: BuildAnswer) -> None:
        """Say what came of a build. LeaseLost where it was granted to another since."""

    def release(self) -> None:
        """Give back what is not settled."""
