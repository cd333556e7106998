"""Suggested values of knobs are checked at submission as far as that goes without a search space."""

from __future__ import annotations

from typing import Any

import pytest
from service_harness import MATMUL, Api


@pytest.mark.parametrize(
    ("knobs", "pointer"),
    [
        ({"t": 0}, "/suggestions/0/knobs/t"),
        ({"t": -4}, "/suggestions/0/knobs/t"),
        ({"t": 2**63}, "/suggestions/0/knobs/t"),
        ({"t": 10**300}, "/suggestions/0/knobs/t"),
        ({"a/b~c": 0}, "/suggestions/0/knobs/a~1b~0c"),
        ({"t": True}, "/suggestions/0/knobs"),
        ({"t": 4.0}, "/suggestions/0/knobs"),
        ({"t": "4"}, "/suggestions/0/knobs"),
        ({str(n): 1 for n in range(101)}, "/suggestions/0/knobs"),
        ([4], "/suggestions/0/knobs"),
    ],
)
def test_values_that_no_knob_has_are_refused_where_they_stand(api: Api, knobs: Any, pointer: str) -> None:
    body = {"workload": MATMUL, "suggestions": [{"sketch": "tiled", "knobs": knobs}]}
    answer = api.http.post("/v1/jobs", json=body)
    assert (answer.status_code, [error["pointer"] for error in answer.json()["errors"]]) == (422, [pointer])
