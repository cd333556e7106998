"""What a machine thinks of that reads the OpenAPI document: no answer that the document does not tell of, and
none that is the server's fault."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import negative_data_rejection
from service_harness import FakeDispatcher, FakeParser, Switch, searched

from tilewright.db import open_store
from tilewright.service.app import bare_app, create_app
from tilewright.service.settings import Settings

# What a schema does not say (that an operator exists, that a page token is ours) is 422, too; a NUL is 400,
# another code generator than the server's 426.
RIGHT = ["2xx", 304, 400, 401, 403, 404, 409, 422, 426]
# Another protocol is wrong by its number, and 426.
WRONG = [400, 401, 403, 404, 405, 409, 413, 415, 422, 426]
CONFIG: dict[str, Any] = {
    "checks": {
        "positive_data_acceptance": {"expected-statuses": RIGHT},
        "negative_data_rejection": {"expected-statuses": WRONG},
    }
}
EVENTS = "/v1/jobs/{job_id}/events"


switch = Switch()
switch.app = bare_app()
schema = schemathesis.openapi.from_asgi(
    "/openapi.json", switch, config=SchemathesisConfig.from_dict(CONFIG)
).exclude(path=EVENTS)


@pytest.fixture(scope="module")
def token(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The token of an administrator of the application that the schema is of, over a store with a job."""
    path = tmp_path_factory.mktemp("schemathesis") / "tilewright.db"
    with open_store(f"sqlite:///{path}") as store:
        searched(store, 3, origin="outside")
        limits = {"requests_per_second": 0, "max_unfinished_jobs": 0, "lease_wait": 0}
        switch.app = create_app(store, Settings(**limits), FakeDispatcher(), FakeParser())
        yield store.create_token("admin", ["admin"])[1]


fast = settings(
    max_examples=5, deadline=None, suppress_health_check=list(HealthCheck), database=None, derandomize=True
)
long = settings(fast, max_examples=100, derandomize=False)


def _call(case: Any, token: str | None) -> None:
    headers = {"Host": "127.0.0.1"} | ({"Authorization": f"Bearer {token}"} if token else {})
    answer = case.call(headers=headers)
    # Arrays and objects are strings in a URL, or nothing: what was meant to be wrong may be right as sent.
    lost = any(isinstance(value, list | dict) for value in (case.query or {}).values())
    case.validate_response(answer, headers=headers, excluded_checks=[negative_data_rejection] if lost else [])


@schema.parametrize()
@fast
def test_an_administrator_is_answered_as_the_document_says(case: Any, token: str) -> None:
    _call(case, token)


@schema.parametrize()
@fast
def test_nobody_in_particular_is_answered_as_the_document_says(case: Any, token: str) -> None:
    _call(case, None)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@schema.parametrize()
@long
def test_an_administrator_is_answered_so_at_length(case: Any, token: str) -> None:
    _call(case, token)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@schema.parametrize()
@long
def test_nobody_in_particular_is_answered_so_at_length(case: Any, token: str) -> None:
    _call(case, None)
