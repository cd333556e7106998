"""The life of a forked child: confine itself, run the body, write one result, end."""

from __future__ import annotations

import gc
import os
import sys
import traceback
from dataclasses import dataclass
from typing import NoReturn

from . import frames, sandbox
from .messages import Failure, FailureKind, MeasureInput, MeasureResult
from .program import Body
from .words import clip, size_of

STAGE_RUNNING = {"stage": "running"}
_EXIT_WITHOUT_RESULT = 70


@dataclass(slots=True)
class Channel:
    """The child's end: tells the watcher where it stands."""

    descriptor: int
    error_kind: FailureKind = "build_error"

    def running(self) -> None:
        self.error_kind = "run_error"
        frames.write(self.descriptor, STAGE_RUNNING)

    def result(self, result: MeasureResult) -> None:
        frames.write(self.descriptor, {"result": result.to_json()})


def live(body: Body, item: MeasureInput, results: int, last_words: int, parent: int) -> NoReturn:
    """Never returns into the frames that were forked, whatever the candidate raises."""
    code = _EXIT_WITHOUT_RESULT
    try:
        sandbox.enter(results, last_words, item.limits, parent, item.threads)
        gc.disable()
        channel = Channel(sandbox.RESULT_DESCRIPTOR)
        channel.result(_run(body, item, channel))
        code = 0
    except BaseException:  # the edge of the process: what is not printed here is lost
        traceback.print_exc()
    finally:
        os._exit(code)


def _run(body: Body, item: MeasureInput, channel: Channel) -> MeasureResult:
    try:
        return body(channel)
    except MemoryError as error:
        # The frames hold what filled the memory, and there must be room for the result.
        traceback.clear_frames(error.__traceback__)
        failure = out_of_memory(channel.error_kind, item)
    except BaseException as error:  # a candidate may raise anything, SystemExit too
        traceback.print_exc()
        sys.stderr.flush()
        words = "".join(traceback.format_exception_only(error)).strip()
        failure = Failure(channel.error_kind, clip(words))
    return MeasureResult.failed(item, failure)


def out_of_memory(kind: FailureKind, item: MeasureInput) -> Failure:
    limit = item.limits.memory_bytes
    return Failure(kind, f"it needed more than its memory limit of {size_of(limit)}", limit=float(limit))
