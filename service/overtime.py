"""Whether a search has outlived the time of its job's budget."""

from __future__ import annotations

from ..db.records import Job
from ..db.store import Store

_FIRST_TRIALS = 64  # of these one was started at least, if any was: they are leased in order


def is_late(job: Job, age: float, slack: float, store: Store) -> bool:
    """Whether the search, whose process is `age` seconds old, should have ended `slack` seconds ago.

    The time of a job begins with its first measurement. A process that is younger than the slack may still
    be reading what was measured before it.
    """
    if job.seconds is None or age <= slack:
        return False
    trials = store.trials(job.id, -1, _FIRST_TRIALS)
    if not trials:
        return age > job.seconds + slack  # a search proposes before anything else
    started = [trial.started_at for trial in trials if trial.started_at is not None]
    now = store.now()
    return bool(started) and now - min(started) - job.stood_still(now) > job.seconds + slack
