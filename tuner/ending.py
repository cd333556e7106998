"""How a search ends that records into a job."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType

from ..db.errors import JobOver, StaleSearch
from .errors import JobStopped
from .recorder import Recorder
from .session import TuningSession

__all__ = ["STOPPED", "Ending"]

STOPPED = (JobStopped, JobOver, StaleSearch)
"""Somebody else has paused or ended the job, or searches it anew."""


@dataclass(frozen=True, slots=True)
class Ending:
    """Ends or pauses the recorded job however the search ends: nobody else would. Without a session the
    search is yet to begin, and only errors end the job."""

    recorder: Recorder
    session: TuningSession | None = None

    def __enter__(self) -> None:
        return

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            if self.session is not None:
                self.recorder.ended(*self.session.conclusion)
        elif isinstance(error, STOPPED):
            return  # it is not this search that says how the job stands
        elif isinstance(error, KeyboardInterrupt | GeneratorExit):
            told = self.session.told if self.session else 0
            self.recorder.paused(f"interrupted after {told} trials: resume the job to go on")
        else:
            self.recorder.ended("failed", str(error) or type(error).__name__)
