"""The seam to the compiler: what the service asks of it, in keys and texts. `wiring` hands in the real
one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ..db.schedule_store import ScheduleStore


@dataclass(frozen=True, slots=True)
class Workload:
    """A program that was read, verified and printed. `program` is its canonical JSON text."""

    key: str
    name: str
    program: str
    script: str
    flops: float | None


@dataclass(frozen=True, slots=True)
class TargetSpec:
    """A target with its defaults filled in. `description` is its canonical JSON text; `unmeasured`: why no
    worker can measure candidates for it."""

    key: str
    description: str
    unmeasured: str | None = None


@dataclass(frozen=True, slots=True)
class Near:
    """A schedule of another key that applies to a program: how it was found, its trace as JSON text, and the
    trial that it comes from."""

    kind: str
    reason: str
    trace: str
    trial: str


@dataclass(frozen=True, slots=True)
class CheckedRecord:
    """What a record of another store holds, with its keys as this compiler makes them; JSON texts."""

    workload: str
    name: str
    program: str
    script: str
    structure: str
    target: str
    description: str
    hardware: str
    trace: str
    candidate: str


class SpecError(Exception):
    """A workload or target that the compiler refuses; `pointer` (RFC 6901) is relative to what was handed
    in."""

    def __init__(self, message: str, pointer: str = "") -> None:
        super().__init__(message, pointer)
        self.message = message
        self.pointer = pointer

    def __str__(self) -> str:
        return self.message


class WorkloadParser(Protocol):
    """Reads what users send. Every method is a pure function and safe to call from several threads."""

    def workload(self, spec: Mapping[str, Any]) -> Workload:
        """The program of `{"op": …}` or of canonical IR JSON. Raises SpecError."""

    def suggestion(self, workload: Workload, said: Mapping[str, Any]) -> None:
        """Raises SpecError unless it is a trace that applies to the workload, or names values of knobs, which
        only a search can check."""

    def target(self, spec: str | Mapping[str, Any], facts: Mapping[str, Any] | None) -> TargetSpec:
        """The target of a name or an object. What it leaves to the host is taken from the hardware that
        `facts` describe, without them from this machine. Raises SpecError, also where that hardware
        cannot run the target's code."""

    def hardware_key(self, facts: Mapping[str, Any]) -> str:
        """The hardware key that these facts amount to. Raises SpecError."""

    def flops(self, program: str) -> float | None:
        """Floating-point operations of one call of a stored program; None where they cannot be counted."""

    def least_seconds(self, program: str, target: str, facts: str) -> float:
        """Seconds that no call of a stored program can take less than for a stored target, on a device of
        these facts (JSON): whoever reports less has not measured it."""

    def why_not(self, program: str, target: str, trace: str) -> str | None:
        """Why a stored trace makes no code of a stored program for a stored target; None where it does."""

    def nearest(
        self,
        source: ScheduleStore,
        program: str,
        target: str,
        hardware: str,
        facts: Mapping[str, Any],
        allow: Sequence[str],
    ) -> tuple[Near | None, str]:
        """The first schedule of another key that is allowed, applies and has code, and why those before it
        did not do."""

    def default_trace(self, program: str, target: str) -> str:
        """The trace of the default schedule. Raises SpecError where there is none."""

    def record(
        self,
        program: Mapping[str, Any],
        target: Mapping[str, Any],
        facts: Mapping[str, Any],
        trace: Mapping[str, Any],
        codegen: str,
    ) -> CheckedRecord:
        """What a record of another store holds. Raises SpecError with a pointer to the part that is wrong."""

    def operators(self) -> Mapping[str, Mapping[str, Any]]:
        """The JSON Schema of each operator of the library, by its name."""

    def codegen_version(self) -> str:
        """The version of the code generator, part of a candidate's identity."""


MOST_KNOBS = 100


def escaped(name: str) -> str:
    """A name in a JSON pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")


def check_knobs(said: Mapping[str, Any]) -> None:
    """Raises SpecError unless it is `{"knobs": {name: integer}}`, with the name of a `sketch` or without."""
    if not {"knobs"} <= said.keys() <= {"sketch", "knobs"}:
        raise SpecError(
            'a suggestion is a trace (`version`, `steps`) or {"sketch": name, "knobs": {name: value}}, not '
            f"an object with {'the keys ' + ', '.join(sorted(said)[:8]) if said else 'no keys'}"
        )
    if not isinstance(said.get("sketch", ""), str):
        raise SpecError("must be the name of a sketch", "/sketch")
    knobs = said["knobs"]
    if not isinstance(knobs, Mapping) or not all(type(value) is int for value in knobs.values()):
        raise SpecError("must be integers by the names of knobs", "/knobs")
    if len(knobs) > MOST_KNOBS:
        raise SpecError(f"names {len(knobs)} knobs; a sketch has at most {MOST_KNOBS}", "/knobs")
    for name, value in knobs.items():
        if not 1 <= value < 2**63:
            raise SpecError(f"must be an integer of 1 to 2**63 - 1, got {value}", f"/knobs/{escaped(name)}")
