"""A forked child that builds several candidates in a row, and runs none.

A fresh child pays for each page that it writes to first; one that has built before builds in half the time.
It is confined as a candidate is. Whatever goes wrong in it is the failure of the one it was building, and
ends it; so do many builds, and memory that it does not give back.
"""

from __future__ import annotations

import base64
import binascii
import math
import os
import socket
import time
import traceback
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from . import child, frames, processors, sandbox
from .forked import POLL_SECONDS, Forked, death_of, wait
from .messages import Failure, Limits, MeasureInput, MeasureResult, MessageError
from .program import Build
from .words import clip, size_of

__all__ = ["Builder", "Built"]

MOST_BUILDS = 100
"""So many builds and it is replaced."""

MOST_GROWTH = 256 << 20
"""Bytes of address space that builds may leave behind, beside what each of them may use."""

MOST_CODE = 32 << 20
"""The most bytes of code of one candidate."""


@dataclass(frozen=True, slots=True)
class Built:
    """The code of a candidate, or why there is none, and the seconds that it took."""

    item: MeasureInput
    what: bytes | Failure
    seconds: float

    def failed(self, failure: Failure) -> MeasureResult:
        """The whole result of one that has no code."""
        result = MeasureResult.failed(self.item, replace(failure, elapsed=self.seconds))
        return replace(result, build_seconds=self.seconds, wall_seconds=self.seconds)


@dataclass(slots=True)
class Builder:
    """One such child, as its parent sees it: idle, or building `item` since `started`. Once it `is_spent` it
    must not be started again. Whoever begins one must `discard` it."""

    build: Build
    limits: Limits
    forked: Forked
    item: MeasureInput | None = None
    is_spent: bool = False
    started: float = 0.0
    builds: int = 0
    _built: float | None = None
    _took: float = 0.0
    _what: bytes | Failure | None = None
    _is_lost: bool = False
    _status: int | None = None
    _reader: frames.FrameReader = field(default_factory=lambda: frames.FrameReader(2 * MOST_CODE))

    @classmethod
    def begin(cls, build: Build, limits: Limits) -> Builder:
        """The caller must have one thread."""

        def live(channel: int, last_words: int, parent: int) -> NoReturn:
            _live(build, limits, channel, last_words, parent)

        return cls(build, limits, Forked.begin(live))

    def start(self, item: MeasureInput, on: frozenset[int] | None = None) -> None:
        """Lets an idle one build, on these processors only (None: on any)."""
        self.item, self._what, self._built = item, None, None
        self.builds += 1
        self.is_spent = self.builds >= MOST_BUILDS
        self.forked.forget_words()
        request = {"item": item.to_json(), "processors": None if on is None else sorted(on)}
        self.started = time.monotonic()
        self.forked.send(frames.encode(request))

    def finish(self) -> Built:
        """Waits for what is being built."""
        assert self.item is not None
        wait([self], self)
        item, self.item = self.item, None
        what = self._end() if self._is_lost else self._what
        assert what is not None
        if isinstance(what, Failure):
            what = replace(what, last_words=self.forked.words)
        return Built(item, what, self._took)

    def discard(self) -> None:
        """Ends it, whatever it does."""
        if self._status is None:
            self._status = self.forked.end()

    @property
    def is_over(self) -> bool:
        return self._what is not None or self._is_lost

    def hear(self, data: bytes) -> None:
        try:
            for message in self._reader.feed(data):
                if not self.is_over:
                    self._take(message)
        except (frames.FrameError, MessageError, binascii.Error) as error:
            self._lose(Failure("build_error", clip(f"the candidate wrote into its result channel: {error}")))

    def left(self) -> float:
        if self.is_over:
            return math.inf
        # That it has built is told first: its code may have to wait until somebody reads it.
        since = self.started if self._built is None else self._built
        left = since + self.limits.build_seconds - time.monotonic()
        return max(0.0, left if self.forked.open_ends else min(left, POLL_SECONDS))

    def look_around(self) -> None:
        if self.is_over:
            return
        if self.forked.has_ended:
            self._lose(None)
        elif self.left() <= 0:
            limit = self.limits.build_seconds
            words = f"the build took longer than its limit of {limit:g} s"
            self._lose(Failure("build_timeout", words, limit))

    def _take(self, message: Any) -> None:
        match message:
            case {"seconds": float() as seconds} if self._built is None:
                self._built = time.monotonic()
                self._took = min(max(seconds, 0.0), self._built - self.started)
            case {"failure": failure, "spent": bool() as spent}:
                self._what = Failure.from_json(failure, "/failure")
                self.is_spent |= spent
            case {"code": str() as code, "spent": bool() as spent}:
                self._what = base64.b64decode(code, validate=True)
                self.is_spent |= spent
            case _:
                raise MessageError("neither code nor a failure", "")

    def _lose(self, failure: Failure | None) -> None:
        """It is ended for that, or, None, has ended by itself."""
        self._what, self._is_lost, self.is_spent = failure, True, True
        self._took = time.monotonic() - self.started
        self.forked.kill()

    def _end(self) -> Failure:
        assert self.item is None
        self.discard()
        if isinstance(self._what, Failure):
            return self._what
        assert self._status is not None
        words, is_memory = death_of(self._status, "building", self.forked.words)
        return child.out_of_memory("build_error", self.limits) if is_memory else Failure("build_error", words)


def _live(build: Build, limits: Limits, channel: int, last_words: int, parent: int) -> NoReturn:
    """Never returns into the frames that were forked, whatever a candidate raises."""
    code = child.WITHOUT_RESULT
    try:
        everywhere = processors.allowed()
        life = Limits(
            build_seconds=MOST_BUILDS * limits.build_seconds,
            run_seconds=0.0,
            memory_bytes=limits.memory_bytes + MOST_GROWTH,
        )
        sandbox.enter(channel, last_words, life, parent)
        with socket.socket(fileno=sandbox.RESULT_DESCRIPTOR) as control:
            begun = sandbox.address_space()
            while (request := frames.receive(control)) is not None:
                processors.confine(frozenset(request["processors"] or everywhere))
                sandbox.allow_memory(limits.memory_bytes)
                start = time.monotonic()
                what, is_spent = _built(build, MeasureInput.from_json(request["item"]))
                # Room to tell of it.
                sandbox.allow_memory(MOST_GROWTH)
                frames.send(control, {"seconds": time.monotonic() - start})
                is_spent = is_spent or sandbox.address_space() - begun > MOST_GROWTH
                frames.send(control, {**what, "spent": is_spent})
        code = 0
    except BaseException:  # the edge of the process: what is not printed here is lost
        traceback.print_exc()
    finally:
        os._exit(code)


def _built(build: Build, item: MeasureInput) -> tuple[dict[str, Any], bool]:
    """What is told of it, and whether it has spent the builder."""
    try:
        what = build(item)
        if isinstance(what, bytes) and len(what) > MOST_CODE:
            words = f"its code has {size_of(len(what))}, and the limit is {size_of(MOST_CODE)}"
            what = Failure("build_error", words, float(MOST_CODE))
    except BaseException as error:  # a candidate may raise anything, SystemExit too
        failure = child.failure_of(error, "build_error", item.limits)
        return {"failure": failure.to_json()}, isinstance(error, MemoryError)
    if isinstance(what, Failure):
        return {"failure": what.to_json()}, False
    return {"code": base64.b64encode(what).decode()}, False
