"""The part of a store's contract that looks at many jobs at once."""

from collections.abc import Sequence
from typing import Protocol

from .summary_records import JobSummary


class SummaryStore(Protocol):
    def job_summaries(self, job_ids: Sequence[str], silence: float) -> dict[str, JobSummary]:
        """What these jobs have come to, by id; one that does not exist is not among them. As many queries
        for a page of jobs as for one.

        A running job of origin `http` is stalled if nothing was heard of it for `silence` seconds: no result,
        no new trials, no event.
        """
