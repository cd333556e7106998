"""Page tokens that no page gave."""

from __future__ import annotations

import base64
import json

import pytest
from service_harness import Api, stored_job


@pytest.mark.parametrize("after", ["\ud800", "job\0", "9" * 500, "", None, 7])
@pytest.mark.parametrize("listing", ["jobs", "trials"])
def test_a_page_token_that_was_made_up_is_refused(api: Api, listing: str, after: object) -> None:
    job = stored_job(api.store)
    name, path = {
        "jobs": ("jobs:", "/v1/jobs"),
        "trials": (f"trials:{job.id}", f"/v1/jobs/{job.id}/trials"),
    }[listing]
    token = base64.urlsafe_b64encode(json.dumps([name, after]).encode()).decode()
    answer = api.http.get(path, params={"page_token": token})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")
