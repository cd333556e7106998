"""The OpenAPI document: committed, whole, and true of what the server answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from service_harness import FACTS, HARDWARE

from tilewright.measure.messages import (
    Failure,
    Lease,
    LeaseUpdate,
    MeasureInput,
    MeasureResult,
    Registration,
    WorkerHello,
)
from tilewright.service import openapi
from tilewright.service.app import ROUTES, bare_app

COMMITTED = Path(__file__).parents[2] / "docs" / "openapi.json"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return json.loads(openapi.text(bare_app()))


def test_the_committed_document_is_the_one_of_this_server() -> None:
    made = openapi.text(bare_app())
    if COMMITTED.read_text("utf-8") != made:
        pytest.fail("docs/openapi.json is not what the server answers: run `make openapi` and commit it")


def _operations(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [operation for path in document["paths"].values() for operation in path.values()]


def test_every_route_is_an_operation_with_an_id_of_its_own(document: dict[str, Any]) -> None:
    ids = [operation["operationId"] for operation in _operations(document)]
    routes = [r.name for module in ROUTES for r in module.router.routes if r.include_in_schema]
    assert (sorted(ids), len(set(ids))) == (sorted(routes), len(ids))


def test_every_refusal_is_a_problem_document(document: dict[str, Any]) -> None:
    problem = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemView"}}}
    contents = [
        response["content"]
        for operation in _operations(document)
        for status, response in operation["responses"].items()
        if status >= "400"
    ]
    assert len(contents) > 100 and all(content == problem for content in contents)


def test_every_operation_says_who_may_use_it(document: dict[str, Any]) -> None:
    open_to_all = {o["operationId"] for o in _operations(document) if "security" not in o}
    assert open_to_all == {"live", "ready", "read_version"}


def test_every_body_has_an_example_or_a_schema_that_says_each_field(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    for operation in _operations(document):
        if "requestBody" in operation:
            content = operation["requestBody"]["content"]
            if list(content) == ["application/octet-stream"]:
                continue
            schema = content["application/json"]["schema"]
            schema = schemas[schema["$ref"].rsplit("/", 1)[1]] if "$ref" in schema else schema
            assert schema["properties"] and schema["additionalProperties"] is False, operation["operationId"]


@pytest.mark.parametrize(
    "message",
    [
        WorkerHello(1, "w1", "5" * 32, HARDWARE, FACTS, {"codegen": "7"}, {"rack": "3"}),
        Registration("worker_1", 30.0, 10.0, 20.0),
        Lease("lease_1", 30.0, 10.0, (MeasureInput("trial", 1, {}, {}, {}),)),
        LeaseUpdate(("trial",), True, 1.0),
        MeasureResult("trial", 1, seconds=1e-5, samples=(1e-5,), error=0.0),
        MeasureResult("trial", 1, failure=Failure("run_error", "it failed")),
    ],
)
def test_what_the_protocol_says_is_what_its_schemas_say(document: dict[str, Any], message: Any) -> None:
    schema = {"$ref": f"#/components/schemas/{type(message).__name__}", **document}
    jsonschema.Draft202012Validator(schema).validate(message.to_json())


def test_a_schema_of_the_protocol_refuses_what_its_reader_refuses(document: dict[str, Any]) -> None:
    wrong = MeasureResult("trial", 1, seconds=1e-5, samples=(1e-5,)).to_json()
    validator = jsonschema.Draft202012Validator({"$ref": "#/components/schemas/MeasureResult", **document})
    for change in ({"seconds": 0}, {"samples": [-1.0]}, {"item": ""}, {"attempt": -1}, {"more": 1}):
        assert not validator.is_valid({**wrong, **change}), change
