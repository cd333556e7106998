"""Following the events of a job over connections that break: where to go on, and when to give up."""

from __future__ import annotations

from ..measure.messages import SourceUnreachable
from .views import EventView

# The server pings an idle stream every 15 s; silence for longer is a lost connection.
STREAM_SILENCE = 40.0
_MISSES = 5


class Following:
    """Which event of a job was seen last."""

    def __init__(self, job: str, url: str, after: int) -> None:
        self._what = f"the events of {job} at {url}"
        self.last = after
        self._misses = 0

    @property
    def headers(self) -> dict[str, str]:
        return {"Accept": "text/event-stream", "Last-Event-ID": str(self.last)}

    def saw(self, event: EventView) -> None:
        self.last = event.seq
        self._misses = 0

    def broke(self, error: Exception) -> float:
        """Seconds after which to try again. Raises SourceUnreachable when the server stays away."""
        self._misses += 1
        if self._misses > _MISSES:
            raise SourceUnreachable(f"{self._what} broke off: {error}") from error
        return min(2.0, 0.1 * 2.0**self._misses)
