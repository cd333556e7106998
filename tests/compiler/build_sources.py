"""Stores of schedules in memory, for builds."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tilewright.compiler import CODEGEN_VERSION, te
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.schedule import Schedule


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


def split_by(n: int) -> Callable[[PrimFunc], Schedule]:
    """The rows split by n."""

    def schedule(func: PrimFunc) -> Schedule:
        sch = Schedule(func)
        sch.split(sch.get_loops(sch.get_block("B"))[0], [None, n])
        return sch

    return schedule


def plus(rows: int) -> PrimFunc:
    a = te.placeholder((rows, 20), "float32", name="A")
    return te.create_prim_func([a, te.compute((rows, 20), lambda i, j: a[i, j] + 1.0, name="B")], name="plus")
