"""The fork server: a process of one thread that has everything loaded and forks a child for each candidate.

Run as `python -m tilewright.measure.zygote DESCRIPTOR PROGRAM` with a socket on DESCRIPTOR, over which
MeasureInput and MeasureResult travel as frames, and a pipe on stdin that its parent holds open as it lives.
"""

from __future__ import annotations

import fcntl
import gc
import os
import signal
import socket
import sys
from collections.abc import Sequence
from dataclasses import replace

from . import frames, watch
from .messages import Failure, MeasureInput, MeasureResult
from .program import Program, load

READY = {"ready": True}


def main(arguments: Sequence[str]) -> int:
    descriptor, name = arguments
    _die_with_the_parent()
    # Terminals and service managers signal whole groups; this process ends when its parent lets go of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with socket.socket(fileno=int(descriptor)) as control:
        program = load(name)
        gc.collect()
        # Children share these pages for as long as no collector writes into them.
        gc.freeze()
        frames.send(control, READY)
        while (request := frames.receive(control)) is not None:
            frames.send(control, _answer(program, MeasureInput.from_json(request)).to_json())
    return 0


def _answer(program: Program, item: MeasureInput) -> MeasureResult:
    prepared = program.prepare(item)
    if isinstance(prepared, Failure):
        return MeasureResult.failed(item, replace(prepared, elapsed=prepared.elapsed or 0.0))
    return watch.measure(prepared, item)


def _die_with_the_parent() -> None:
    """Lets the closing of stdin kill this process, even in the middle of a long computation: the default
    action of SIGIO is to terminate. A parent-death signal would not do: it watches a thread of the parent."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_ASYNC | os.O_NONBLOCK)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
