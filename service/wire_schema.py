"""JSON Schemas of the measurement protocol, from the same annotations that its reader goes by."""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from ..measure.health_messages import HealthReport, HealthUpdate
from ..measure.messages import (
    MAX_BATCH,
    PROTOCOL,
    Lease,
    LeaseUpdate,
    MeasureResult,
    Registration,
    WorkerHello,
)
from ..measure.run_only.messages import MAX_BUILDS, BuildAnswer, BuildLease, RunLease
from ..measure.wire import MAX_INTEGER, Bound, Message, Size

Schema = dict[str, Any]

_REF = "#/components/schemas/"
_SCALARS: Mapping[Any, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer", "minimum": -MAX_INTEGER, "maximum": MAX_INTEGER},
    float: {"type": "number"},
}
_ID: Schema = {"type": "string", "minLength": 1, "maxLength": 128}
_PROTOCOL: Schema = {
    "type": "integer",
    "minimum": 1,
    "maximum": PROTOCOL,
    "description": "426 for any other",
}


def _call(**fields: Schema) -> Schema:
    """The body of a call of a worker: all its fields are needed."""
    return _body(worker={**_ID, "description": "the id that attaching gave"}, session=_ID, **fields)


def _body(**fields: Schema) -> Schema:
    properties = {"protocol": _PROTOCOL, **fields}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_COUNT: Schema = {"type": "integer", "minimum": 1, "maximum": MAX_BATCH}
_SECONDS: Schema = {"type": "number", "minimum": 0, "maximum": 86_400}
_RESULTS: Schema = {
    "type": "array",
    "items": {"$ref": f"{_REF}MeasureResult"},
    "maxItems": MAX_BATCH,
}
_ATTEMPT: Schema = {"type": "integer", "minimum": 1, "maximum": 2**31}
_HELD: Schema = {
    "type": "object",
    "properties": {"build": _ID, "attempt": _ATTEMPT},
    "required": ["build", "attempt"],
    "additionalProperties": False,
}
CALLS: Mapping[str, Schema] = {
    "attach_worker": {"$ref": f"{_REF}WorkerHello"},
    "detach_worker": _call(),
    "report_health": _call(report={"$ref": f"{_REF}HealthReport"}),
    "take_lease": _call(max_items=_COUNT, wait_seconds=_SECONDS),
    "start_item": _call(item=_ID, attempt={"type": "integer", "minimum": 0, "maximum": 2**31}),
    "renew_lease": _call(),
    "settle_lease": _call(results=_RESULTS),
    "release_lease": _call(),
    "take_builds": _body(
        builder=_ID,
        codegen={**_ID, "description": "of the builder's code generator: 426 for any but the server's"},
        max_items={"type": "integer", "minimum": 1, "maximum": MAX_BUILDS},
        wait_seconds=_SECONDS,
    ),
    "renew_builds": _body(builder=_ID, builds={"type": "array", "items": _HELD, "maxItems": MAX_BUILDS}),
    "release_builds": _body(builder=_ID),
    "settle_build": _body(builder=_ID, answer={"$ref": f"{_REF}BuildAnswer"}),
}
"""What the calls of workers and builders say, by operation."""

ANSWERS: Mapping[str, Schema] = {
    "attach_worker": {"$ref": f"{_REF}Registration"},
    "report_health": {"$ref": f"{_REF}HealthUpdate"},
    "take_lease": {"anyOf": [{"$ref": f"{_REF}Lease"}, {"$ref": f"{_REF}RunLease"}]},
    "take_builds": {"$ref": f"{_REF}BuildLease"},
    "start_item": {"$ref": f"{_REF}LeaseUpdate"},
    "renew_lease": {"$ref": f"{_REF}LeaseUpdate"},
    "settle_lease": {"$ref": f"{_REF}LeaseUpdate"},
}
"""What they are answered."""


_KINDS = (
    WorkerHello,
    Registration,
    HealthReport,
    HealthUpdate,
    Lease,
    RunLease,
    LeaseUpdate,
    MeasureResult,
    BuildLease,
    BuildAnswer,
    HealthReport,
    HealthUpdate,
)


def components() -> dict[str, Schema]:
    """The schemas that CALLS and ANSWERS refer to, by name."""
    found: dict[str, Schema] = {}
    for kind in _KINDS:
        _describe(kind, found)
    found["WorkerHello"]["properties"]["protocol"] = _PROTOCOL
    return found


def _describe(kind: type[Message], found: dict[str, Schema]) -> None:
    if kind.__name__ in found:
        return
    made: Schema = {"type": "object"}
    found[kind.__name__] = made
    if kind.__doc__:
        made["description"] = " ".join(kind.__doc__.split())
    hints = get_type_hints(kind, include_extras=True)
    fields = dataclasses.fields(kind)
    made["properties"] = {f.name: _of(hints[f.name], found) for f in fields}
    missing = dataclasses.MISSING
    made["required"] = [f.name for f in fields if f.default is missing and f.default_factory is missing]
    made["additionalProperties"] = False


def _of(hint: Any, found: dict[str, Schema]) -> Schema:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        made = _of(arguments[0], found)
        for narrowing in arguments[1:]:
            made = {**made, **_narrowed(narrowing, made["type"])}
        return made
    if origin in (Union, types.UnionType):
        (inner,) = (a for a in arguments if a is not type(None))
        return {"anyOf": [_of(inner, found), {"type": "null"}]}
    if origin is Literal:
        return {"type": "string", "enum": list(arguments)}
    if origin is tuple:
        return {"type": "array", "items": _of(arguments[0], found)}
    if origin is dict:
        return {
            "type": "object",
            "additionalProperties": True if arguments[1] is Any else _of(arguments[1], found),
        }
    if isinstance(hint, type) and issubclass(hint, Message):
        _describe(hint, found)
        return {"$ref": _REF + hint.__name__}
    return dict(_SCALARS[hint])


def _narrowed(narrowing: Any, kind: str) -> Schema:
    if isinstance(narrowing, Bound):
        low = "exclusiveMinimum" if narrowing.above else "minimum"
        high = {} if math.isinf(narrowing.high) else {"maximum": narrowing.high}
        return {low: narrowing.low, **high}
    assert isinstance(narrowing, Size), f"no schema for {narrowing!r}"
    least, most = {
        "string": ("minLength", "maxLength"),
        "array": ("minItems", "maxItems"),
        "object": ("minProperties", "maxProperties"),
    }[kind]
    return {least: narrowing.least, most: narrowing.most}
