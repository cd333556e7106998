"""The process in which artifacts are made, as a builder sees it."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Self

from ..messages import Failure
from ..program import PREPARE_SECONDS
from ..runner import ForkServer
from ..words import clip
from .messages import BuildInput

_MODULE = "tilewright.measure.run_only.bench"
_SPARE_SECONDS = 10.0


class Workbench:
    """A context manager. Nothing that a candidate does raises here; MeasureError says that the process does
    not start. One that died is replaced."""

    def __init__(self, *, start_seconds: float = 60.0) -> None:
        self._start_seconds = start_seconds
        self._server: ForkServer | None = None
        self._state = threading.RLock()

    def __enter__(self) -> Self:
        self._started()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def make(self, item: BuildInput, path: Path, most_bytes: int) -> tuple[Failure | None, float]:
        """Writes the artifact to `path`, or says why there is none; and the seconds that it took."""
        begun = time.monotonic()
        server = self._started()
        patience = item.limits.build_seconds + PREPARE_SECONDS + _SPARE_SECONDS
        try:
            server.send({"item": item.to_json(), "path": str(path), "most_bytes": most_bytes})
            answer = server.receive(begun + patience)
            if answer is not None:
                said = answer["failure"]
                return None if said is None else Failure.from_json(said), float(answer["seconds"])
            reason = server.epitaph()
        except TimeoutError:
            reason = f"it did not answer within {patience:g} s"
        except OSError:
            reason = server.epitaph()
        self.close()
        elapsed = time.monotonic() - begun
        message = clip(f"the building process was lost: {reason}")
        return Failure("build_error", message, elapsed=elapsed, last_words=server.tail.text), elapsed

    def cancel(self) -> None:
        """Ends what is being made, at once. From any thread or signal handler."""
        with self._state:
            if self._server is not None:
                self._server.kill()

    def close(self) -> None:
        with self._state:
            server, self._server = self._server, None
        if server is not None:
            server.close()

    def _started(self) -> ForkServer:
        with self._state:
            if self._server is not None and not self._server.is_alive():
                self.close()
            if self._server is None:
                self._server = ForkServer("", self._start_seconds, _MODULE)
            return self._server
