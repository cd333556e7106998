from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from synthetic import FakeMachine, task, tiles

from tilewright.compiler.target import Hardware
from tilewright.db import open_store
from tilewright.measure.messages import MeasureInput, MeasureResult
from tilewright.tuner.interrupts import heard
from tilewright.tuner.tune import Tuner


def _lose_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> list[type[BaseException]]:
    """An interrupt that comes in a destructor, where Python cannot raise; what it said instead."""
    lost: list[type[BaseException]] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda said: lost.append(said.exc_type))

    class Dies:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(1_000):  # until the interpreter looks
                pass

    dies = Dies()
    del dies
    return lost


def test_an_interrupt_in_a_destructor_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    with heard() as interrupted:
        before = interrupted()
        lost = _lose_an_interrupt(monkeypatch)
        assert (before, lost, interrupted()) == (False, [KeyboardInterrupt], True)


def test_an_interrupt_is_raised_as_ever() -> None:
    with heard(), pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)


def test_the_handler_is_what_it_was() -> None:
    before = signal.getsignal(signal.SIGINT)
    with heard():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before


def test_a_handler_of_the_user_stays() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with heard() as interrupted:
            os.kill(os.getpid(), signal.SIGINT)
            assert not interrupted()
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_search_ends_by_an_interrupt_that_python_could_not_raise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with open_store(f"sqlite:///{tmp_path}/t.db") as store:

        class Loses(FakeMachine):
            def measure(self, item: MeasureInput, ahead: MeasureInput | None = None) -> MeasureResult:
                if len(self.items) == 3:
                    _lose_an_interrupt(monkeypatch)
                return super().measure(item, ahead)

        tuner = Tuner(task=task(tiles()), hardware=Hardware.of({"architecture": "t"}), trials=64, store=store)
        with pytest.raises(KeyboardInterrupt):
            tuner.run(Loses())
        (job,) = store.jobs(None, None, 9).items
        assert (job.state, job.reason.split(" after ")[0]) == ("paused", "interrupted")
