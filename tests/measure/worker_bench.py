"""A worker on the bench: its source and its runner are fakes, and time moves only when it sleeps."""

from __future__ import annotations

from dataclasses import dataclass, field

from fake_source import HELLO, FakeRunner, FakeSource, FakeTime, trial

from tilewright.measure.checkup import Checkup
from tilewright.measure.health_messages import PartName
from tilewright.measure.messages import MeasureInput, SourceUnreachable
from tilewright.measure.patience import Patience, Persistence
from tilewright.measure.worker import Exit, Worker

UNREACHABLE = SourceUnreachable("no answer from http://127.0.0.1:9: connection refused")


def golden() -> dict[PartName, MeasureInput]:
    return {"compute": trial("golden:compute"), "memory": trial("golden:memory")}


@dataclass
class Bench:
    """A worker between a fake source and a fake runner; it drains once there is no more work."""

    source: FakeSource
    runner: FakeRunner = field(default_factory=FakeRunner)
    time: FakeTime = field(default_factory=FakeTime)
    said: list[str] = field(default_factory=list)
    exit: Exit | None = None
    worker: Worker = field(init=False)

    def __post_init__(self) -> None:
        persistence = Persistence(
            Patience(attach=20.0, outage=600.0), self.said.append, self.time.clock, self.time.sleep
        )
        checkup = Checkup(golden, self.runner.measure, self.time.clock)
        self.worker = Worker(self.source, self.runner, HELLO, 16, persistence, checkup)
        self.source.when_empty = self.worker.interrupt

    def run(self) -> Bench:
        self.exit = self.worker.run()
        return self
