"""The trials of a job."""

from __future__ import annotations

from fastapi import APIRouter

from .. import paging
from ..auth import CanReadJobs
from ..context import Ctx
from ..presenter import trial_view
from ..views import TrialsView

router = APIRouter(prefix="/v1/jobs/{job_id}/trials", tags=["jobs"])


@router.get("")
def list_trials(
    job_id: str,
    context: Ctx,
    _: CanReadJobs,
    page_size: paging.PageSize = 100,
    page_token: paging.PageToken = None,
) -> TrialsView:
    """Candidates of a job and what came of them, by number."""
    listing = f"trials:{job_id}"
    after = paging.decode_number(listing, page_token)
    context.store.job(job_id)
    # One more than asked for tells whether there is a next page.
    trials = context.store.trials(job_id, -1 if after is None else after, page_size + 1)
    more = len(trials) > page_size
    return TrialsView(
        trials=[trial_view(trial) for trial in trials[:page_size]],
        next_page_token=paging.encode(listing, str(trials[page_size - 1].number) if more else None),
    )
