"""What a store takes and gives about artifacts and the builds that make them; conventions as in `records`."""

from dataclasses import dataclass
from typing import Literal

from .words import FailureKind

BuildKind = Literal["program", "data"]


@dataclass(frozen=True, slots=True)
class BuildItem:
    """One artifact that is to be made: of a candidate its `program`, of a workload and seed its `data`.

    `attempt` is the fencing token of this grant. `description` is the target's, `trace` the candidate's, both
    empty for data.
    """

    build: str
    attempt: int
    kind: BuildKind
    program: str
    description: str
    trace: str
    input_seed: int


@dataclass(frozen=True, slots=True)
class BuildResult:
    """The SHA-256 of an artifact that was put before, or a typed failure, and never both."""

    artifact: str | None = None
    failure_kind: FailureKind | None = None
    failure_message: str = ""
    failure_detail: str = "{}"
    build_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class BuildCounts:
    """Builds by state, and the bytes of all artifacts."""

    started: int
    done: int
    failed: int
    artifact_bytes: int
