"""How the searches of a job ended while the job went on: kept with it as events of kind `search_ended`.

So whoever decides about the job next, in this process or another, knows how often its search has died.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass

from ..db.errors import StaleSearch
from ..db.records import Job
from ..db.store import Store
from ..db.words import FINAL_JOB_STATES
from .search_process import WAITS

KIND = "search_ended"

DATABASE_AWAY = 69
"""The exit status of a search whose database was out of reach or full, EX_UNAVAILABLE of sysexits.h: that is
no death of the search, however often it happens."""


@dataclass(frozen=True, slots=True)
class Knew:
    """What a search of a job measured outside began with: so many results of so many trials."""

    done: int
    trials: int

    @classmethod
    def of(cls, job: Job) -> Knew:
        return cls(job.done, job.trials)


@dataclass(frozen=True, slots=True)
class SearchEnd:
    """The end of the search under `epoch`, `at` this time of the database.

    `status` is its process' exit status, negative for a signal, and None where the process was lost with its
    machine. `deaths` counts ends since the job had `done` results. `given_up`: the job was failed for it, so
    that it counts no more where the job is resumed.
    """

    epoch: int
    status: int | None
    words: str
    deaths: int
    done: int
    knew: Knew
    given_up: bool
    at: float

    @property
    def by_itself(self) -> bool:
        """Whether it ended of an error of its own: it would end so again."""
        return self.status is not None and self.status >= 0 and self.status != DATABASE_AWAY

    @property
    def how(self) -> str:
        """`by signal 9`, `with status 1`, …"""
        if self.status is None:
            return "with its runner"
        if self.status == DATABASE_AWAY:
            return "with its database away"
        return f"by signal {-self.status}" if self.status < 0 else f"with status {self.status}"


def report_end(store: Store, job_id: str, epoch: int, knew: Knew, status: int | None, words: str) -> None:
    """Tell the store that the search of a job under an epoch has ended, so and with these last words.

    Without effect where the job has ended, is paused, or is another search's.
    """
    job = store.job(job_id)
    if job.state in FINAL_JOB_STATES or job.state == "paused" or job.epoch != epoch:
        return
    before = last_end(store, job_id)
    again = before is not None and not before.given_up and before.epoch == epoch - 1
    deaths = 1
    if again and before is not None and job.done <= before.done:
        deaths = before.deaths + 1
    if rested(job, status):
        deaths = 0
    elif status == DATABASE_AWAY:
        deaths -= 1
    _tell(store, job, status, words, deaths, knew)


def give_up(store: Store, job: Job, end: SearchEnd) -> None:
    """Say that the job is failed for this end."""
    _tell(store, job, end.status, end.words, end.deaths, end.knew, given_up=True)


def last_end(store: Store, job_id: str) -> SearchEnd | None:
    """How the last search of the job ended that ended before its job, if one did."""
    event = store.last_event(job_id, KIND)
    if event is None:
        return None
    said = json.loads(event.data)
    return SearchEnd(
        epoch=said["epoch"],
        status=said["status"],
        words=said["message"],
        deaths=said["deaths"],
        done=said["done"],
        knew=Knew(*said["knew"]),
        given_up=said["given_up"],
        at=event.at,
    )


def rested(job: Job, status: int | None) -> bool:
    """Whether a search that ended so has done all that it can before more results, or a worker, come."""
    return status == WAITS or (status == 0 and job.origin == "outside")


def _tell(
    store: Store,
    job: Job,
    status: int | None,
    words: str,
    deaths: int,
    knew: Knew,
    given_up: bool = False,
) -> None:
    said = {
        "epoch": job.epoch,
        "status": status,
        "message": words,
        "deaths": deaths,
        "done": job.done,
        "knew": [knew.done, knew.trials],
        "given_up": given_up,
    }
    with contextlib.suppress(StaleSearch):  # another search has begun meanwhile
        store.add_event(job.id, KIND, json.dumps(said), job.epoch)
