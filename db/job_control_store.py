"""The part of a store's contract by which jobs stand still, go on, and get more to use."""

from collections.abc import Collection
from typing import Protocol

from .records import Job


class JobControlStore(Protocol):
    """Standing still and going on. While a job is paused or over, its `seconds` do not pass.

    | state                  | pause     | resume          | extend                      | cancel      |
    |------------------------|-----------|-----------------|-----------------------------|-------------|
    | queued waiting running | `paused`  | no effect       | searched anew with more     | `cancelled` |
    | paused                 | no effect | goes on         | stays paused, with more     | `cancelled` |
    | cancelled failed       | JobOver   | goes on         | goes on with more           | no effect   |
    | completed exhausted    | JobOver   | AlreadyComplete | goes on with more           | no effect   |

    A job that goes on is `running`, or `queued` if no search of it has begun yet, and has all its trials:
    those with results as they are, all others in the queue, also where the end of the job had cancelled
    them. By the rule of a search it then proposes what it would have proposed without a stop.
    """

    def pause_job(self, job_id: str, reason: str = "paused", epoch: int | None = None) -> Job:
        """From now on no trial of the job is leased. One that runs takes its result; those of a lease that
        were not started are told as cancelled to the worker, and wait for the job to go on.

        StaleSearch for an old epoch; None: it is not a search that pauses itself. JobOver.
        """

    def resume_job(self, job_id: str) -> Job:
        """Let a job go on; AlreadyComplete where that needs a larger budget. A local job needs a process that
        tunes it, and that calls `resume_local`."""

    def resume_local(self, job_id: str, process: str) -> int:
        """`resume_job` and `begin_search` in one, by the process that will tune a local job; its epoch.

        Conflict for a job of the service, and while another process that tunes it is there.
        """

    def extend_job(
        self,
        job_id: str,
        trials: int | None = None,
        seconds: float | None = None,
        target_seconds: float | None = None,
        patience: int | None = None,
        lift: Collection[str] = (),
    ) -> Job:
        """Give the job a larger budget: new totals, None for a limit that stays; `lift` names limits
        (`seconds`, `target_seconds`, `patience`) that it has no longer. Adds an event of kind `extended` with
        the whole budget.

        The search goes on as if it had had this budget from the start, where nothing was proposed that it
        would not have been. The budget that the job has already: no effect, so a call may be repeated while
        the job is not over; then AlreadyComplete or JobOver. InvalidValue for a budget that ends earlier in
        any respect. A local job that was over becomes `paused`, until a process resumes it; Conflict while
        one tunes it.
        """
