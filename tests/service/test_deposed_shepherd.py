"""A shepherd that stood still in the middle of a round, while another one took over."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from service_harness import FakeParser, attach, stored_job
from shepherding import until

from tilewright.db import Store
from tilewright.service.dispatch import Dispatched
from tilewright.service.shepherd import Shepherd

INTERVAL = 0.02


@dataclass
class Election:
    """A Leadership that answers what is left of `answers`, and from then on the last of them."""

    answers: list[bool]
    asked: int = 0

    def leads(self) -> bool:
        self.asked += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def close(self) -> None:
        return


@dataclass
class Standing:
    """A Dispatcher at which the process stands still for a moment, in each round."""

    still: float
    dispatched: list[tuple[str, int]] = field(default_factory=list)

    def full(self) -> str | None:
        return None

    def dispatch(self, job: str, epoch: int) -> None:
        self.dispatched.append((job, epoch))

    def searches(self) -> Mapping[str, Dispatched]:
        time.sleep(self.still)
        return {job: Dispatched(epoch, None) for job, epoch in self.dispatched}

    def withdraw(self, job: str) -> None:
        return

    def problem(self) -> str | None:
        return None

    def close(self) -> None:
        return


def test_it_decides_nothing_once_another_may_lead_and_says_so(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    attach(store)
    job = stored_job(store)
    election, dispatcher = Election([True, False]), Standing(2 * INTERVAL)
    with caplog.at_level(logging.INFO, "tilewright.shepherd"):
        _rounds(store, dispatcher, election, 3)
    assert (dispatcher.dispatched, store.job(job.id).state) == ([], "queued")
    assert [record.message for record in caplog.records] == [
        "this process stood still or lost its connection, and leads no more: another one may"
    ]


def test_it_goes_on_after_a_long_round_in_which_it_still_led(store: Store) -> None:
    attach(store)
    job = stored_job(store)
    dispatcher = Standing(2 * INTERVAL)
    _rounds(store, dispatcher, Election([True]), 4)
    assert dispatcher.dispatched == [(job.id, 1)]


def test_it_decides_again_once_it_was_elected_again(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    attach(store)
    job = stored_job(store)
    election, dispatcher = Election([True, False, True]), Standing(2 * INTERVAL)
    with caplog.at_level(logging.INFO, "tilewright.shepherd"):
        _rounds(store, dispatcher, election, 5)
    assert dispatcher.dispatched == [(job.id, 1)]
    assert [record.message for record in caplog.records] == [
        "this process stood still or lost its connection, and leads no more: another one may",
        "this process leads from now on: it decides which searches run",
        f"job {job.id}: search 1 begins",
    ]


def _rounds(store: Store, dispatcher: Standing, election: Election, count: int) -> None:
    """Until the election was asked `count` times."""
    shepherd = Shepherd(store, FakeParser(), dispatcher, leadership=election, interval=INTERVAL)
    shepherd.start()
    try:
        until(lambda: election.asked >= count)
    finally:
        shepherd.stop()
