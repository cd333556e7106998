"""The fork server: a process of one thread that has everything loaded and forks a child for each candidate.

Run as `python -m tilewright.measure.zygote DESCRIPTOR PROGRAM` with a socket on DESCRIPTOR, over which
requests {"item": a MeasureInput, "ahead": the next one, or null} and MeasureResults travel as frames, and a
pipe on stdin that its parent holds open as it lives.
"""

from __future__ import annotations

import fcntl
import gc
import os
import signal
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from . import frames, watch
from .messages import Failure, MeasureInput, MeasureResult
from .processors import spare
from .program import Program, Split, load
from .workshop import Workshop

READY = {"ready": True}


def main(arguments: Sequence[str]) -> int:
    descriptor, name = arguments
    die_with_the_parent()
    # Terminals and service managers signal whole groups; this process ends when its parent lets go of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with socket.socket(fileno=int(descriptor)) as control:
        # Among modules that are being loaded there is nothing to free, and looking takes a fifth of the time.
        gc.disable()
        program = load(name)
        gc.collect()
        # Children share these pages for as long as no collector writes into them.
        gc.freeze()
        gc.enable()
        frames.send(control, READY)
        bench = _Bench(program)
        while (request := frames.receive(control)) is not None:
            frames.send(control, bench.answer(request).to_json())
        bench.clear()
    return 0


@dataclass(slots=True)
class _Bench:
    """Where candidates are measured: one runs, and at most one is built ahead."""

    program: Program
    ahead: watch.Watched | None = None
    workshop: Workshop = field(default_factory=Workshop)

    def answer(self, request: dict[str, Any]) -> MeasureResult:
        item = MeasureInput.from_json(request["item"])
        running = self._taken(item) or self._begun(item)
        if isinstance(running, MeasureResult):
            return running
        if request["ahead"] is not None:
            self._build_ahead(MeasureInput.from_json(request["ahead"]), running)
        return running.finish(item, beside=self.ahead or self.workshop.busy)

    def clear(self) -> None:
        self._discard()
        self.workshop.clear()

    def _discard(self) -> None:
        if self.ahead is not None:
            self.ahead.discard()
            self.ahead = None

    def _taken(self, item: MeasureInput) -> watch.Watched | None:
        """What was built ahead, if it is this very item; else it is in vain."""
        if self.ahead is None or replace(self.ahead.item, best_seconds=item.best_seconds) != item:
            self._discard()
            return None
        taken, self.ahead = self.ahead, None
        return taken

    def _begun(self, item: MeasureInput) -> watch.Watched | MeasureResult:
        prepared = self.program.prepare(item)
        if isinstance(prepared, Failure):
            return MeasureResult.failed(item, replace(prepared, elapsed=prepared.elapsed or 0.0))
        if not isinstance(prepared, Split):
            return watch.begin(prepared, item)
        built = self.workshop.built(item, prepared.build)
        if isinstance(built.what, Failure):
            return built.failed(built.what)
        return watch.begin(partial(prepared.run, built.what), item, building=built.seconds)

    def _build_ahead(self, item: MeasureInput, running: watch.Watched) -> None:
        """Where a processor is to spare for it, and nothing has to be prepared: that may take long, and
        nobody would watch over the one that runs."""
        if not _alike(item, running.item):
            return
        processors = spare(running.pid, item.threads)
        if not processors:
            return
        prepared = self.program.prepare(item)
        if isinstance(prepared, Split):
            self.workshop.begin(item, prepared.build, processors)
        elif not isinstance(prepared, Failure):
            self.ahead = watch.begin(prepared, item, processors)


def _alike(one: MeasureInput, other: MeasureInput) -> bool:
    """Whether what was prepared for one serves the other."""
    return (one.workload, one.target, one.input_seed, one.limits) == (
        other.workload,
        other.target,
        other.input_seed,
        other.limits,
    )


def die_with_the_parent() -> None:
    """Lets the closing of stdin kill this process, even in the middle of a long computation, and on Linux
    even while it is stopped; elsewhere by SIGIO, whose default action is to terminate. A parent-death signal
    would not do: it watches a thread of the parent."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
    if sys.platform == "linux":
        fcntl.fcntl(0, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_ASYNC | os.O_NONBLOCK)


if __name__ == "__main__":
    # Taking apart all that was loaded would take longer than many a trial.
    os._exit(main(sys.argv[1:]))
