"""The body of a search child of the service."""

from __future__ import annotations

import time
from collections.abc import Callable

from ..compiler.ir import VerifyError
from ..compiler.target import TargetError
from ..db.records import Job
from ..db.store import Store
from .errors import TuningError
from .opening import reopen_task
from .search import StoredSearch
from .strategies import load_strategy
from .task import TuningTask
from .time_split import Stopwatch
from .watchdog import in_time

__all__ = ["run_search"]

# A job of one second may take another to make its space on a busy machine.
_GRACE_SECONDS = 5.0


def run_search(
    job: Job,
    store: Store,
    epoch: int,
    *,
    open_task: Callable[[Job, Store], TuningTask] = reopen_task,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Job:
    """Search for the best schedule of a stored job, from wherever its stored trials left off, and return the
    job as it stands in the end.

    `epoch` is what `begin_search` gave: once a newer one is given, this search stops, quietly. Workers
    measure the trials; who waits for workers, and for how long, is the service's concern. A job that cannot
    be searched (an unknown strategy, no legal candidate, a program that this version does not read, or whose
    space takes longer to make than the job's seconds) ends as `failed` with the reason. Errors of the store
    are raised: the search can be begun again.
    """
    try:
        watch = Stopwatch()
        with in_time("making the search space", job.seconds, grace=_GRACE_SECONDS), watch.part("generate"):
            task = open_task(job, store)
        strategy = load_strategy(job.strategy)
        search = StoredSearch(job, epoch, store, task, strategy, clock=clock, sleep=sleep, watch=watch)
        return search.run()
    except (TuningError, VerifyError, TargetError) as error:
        return store.finish_job(job.id, epoch, "failed", str(error))
