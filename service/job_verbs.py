"""The client's verbs for jobs that exist: pause, resume, extend, cancel."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from .transport import Transport
from .views import JobView


class JobVerbs:
    """Each may be sent again: a call whose answer was lost has no second effect."""

    _transport: Transport

    def cancel(self, job: str) -> JobView:
        """End a job and keep what it found. Cancelling a finished job changes nothing."""
        return self._act(job, "cancel")

    def pause(self, job: str) -> JobView:
        """Give out no more candidates of a job; those that are being measured are kept, and the job's seconds
        stop. ApiError (409) for a job that is over."""
        return self._act(job, "pause")

    def resume(self, job: str) -> JobView:
        """Let a paused, cancelled or failed job go on from what it has measured; one that is under way stays
        as it is. ApiError (409, `already-complete`) for one that is completed or exhausted: see `extend`."""
        return self._act(job, "resume")

    def extend(
        self,
        job: str,
        *,
        trials: int | None = None,
        seconds: float | None = None,
        target_seconds: float | None = None,
        patience: int | None = None,
        lift: Collection[str] = (),
    ) -> JobView:
        """Give a job a larger budget, in new totals, with which it goes on; a paused one stays paused.

        What is None stays; `lift` names limits that it has no longer. ApiError (422) for a budget that would
        end it earlier, 409 for one that it has used up already.
        """
        given = {
            "trials": trials,
            "seconds": seconds,
            "target_seconds": target_seconds,
            "patience": patience,
        }
        budget = {name: value for name, value in given.items() if value is not None or name in lift}
        return self._act(job, "extend", {"budget": budget})

    def _act(self, job: str, verb: str, body: dict[str, Any] | None = None) -> JobView:
        path = f"/v1/jobs/{segment(job)}:{verb}"
        return JobView.model_validate(
            self._transport.request("POST", path, json=body, idempotent=True).json()
        )


def segment(name: str) -> str:
    """A name as one path segment: an id that a user mistyped must not reach another route."""
    if not name or not all(c.isalnum() or c in "_-" for c in name):
        raise ValueError(f"{name!r} is no id; ids look like job_0123456789ab")
    return name
