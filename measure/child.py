"""The life of a forked child: confine itself, run the body, write one result, end."""

from __future__ import annotations

import gc
import os
import socket
import sys
import traceback
from dataclasses import dataclass
from typing import NoReturn

from . import frames, processors, sandbox
from .messages import Failure, FailureKind, Limits, MeasureInput, MeasureResult
from .program import Body
from .words import clip, size_of

STAGE_BUILT = {"stage": "built"}
WITHOUT_RESULT = 70
"""The exit status of a child that gives none."""


@dataclass(slots=True)
class Channel:
    """The child's end: tells the watcher where it stands, and waits for its word."""

    socket: socket.socket
    processors: frozenset[int] | None = None
    error_kind: FailureKind = "build_error"
    best_seconds: float | None = None

    def running(self) -> float | None:
        if self.error_kind == "run_error":
            return self.best_seconds
        frames.send(self.socket, STAGE_BUILT)
        word = frames.receive(self.socket)
        if word is None:
            os._exit(WITHOUT_RESULT)
        self.error_kind = "run_error"
        if self.processors is not None:
            processors.leave(self.processors)
        self.best_seconds = word["best_seconds"]
        return self.best_seconds

    def result(self, result: MeasureResult) -> None:
        frames.send(self.socket, {"result": result.to_json()})


def live(
    body: Body,
    item: MeasureInput,
    channel: int,
    last_words: int,
    parent: int,
    confined_to: frozenset[int] | None = None,
) -> NoReturn:
    """Never returns into the frames that were forked, whatever the candidate raises."""
    code = WITHOUT_RESULT
    try:
        before = None if confined_to is None else processors.confine(confined_to)
        sandbox.enter(channel, last_words, item.limits, parent, item.threads)
        gc.disable()
        mine = Channel(socket.socket(fileno=sandbox.RESULT_DESCRIPTOR), before)
        mine.result(_run(body, item, mine))
        code = 0
    except BaseException:  # the edge of the process: what is not printed here is lost
        traceback.print_exc()
    finally:
        os._exit(code)


def _run(body: Body, item: MeasureInput, channel: Channel) -> MeasureResult:
    try:
        return body(channel)
    except BaseException as error:  # a candidate may raise anything, SystemExit too
        return MeasureResult.failed(item, failure_of(error, channel.error_kind, item.limits))


def failure_of(error: BaseException, kind: FailureKind, limits: Limits) -> Failure:
    """What a candidate raised, which is printed for its last words."""
    if isinstance(error, MemoryError):
        # The frames hold what filled the memory, and there must be room for the result.
        traceback.clear_frames(error.__traceback__)
        return out_of_memory(kind, limits)
    traceback.print_exception(error)
    sys.stderr.flush()
    return Failure(kind, clip("".join(traceback.format_exception_only(error)).strip()))


def out_of_memory(kind: FailureKind, limits: Limits) -> Failure:
    limit = limits.memory_bytes
    return Failure(kind, f"it needed more than its memory limit of {size_of(limit)}", limit=float(limit))
