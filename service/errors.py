"""Every error of the HTTP API as a problem document (RFC 9457): one table from domain errors to answers.

A problem says what was wrong and what would be right, where (JSON pointers), and never how the server is
made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..db import errors as store
from ..measure.messages import MessageError

TYPE_PREFIX = "urn:tilewright:problem:"
MEDIA_TYPE = "application/problem+json"


@dataclass(frozen=True, slots=True)
class Fault:
    """One wrong place of a request: a JSON pointer into its body, or the name of a parameter or header."""

    detail: str
    pointer: str | None = None
    parameter: str | None = None

    def to_json(self) -> dict[str, str]:
        place = {"pointer": self.pointer} if self.pointer is not None else {"parameter": self.parameter or ""}
        return {**place, "detail": self.detail}


class ServiceError(Exception):
    """A request that is refused. Each subclass is one stable `code` with its status and title."""

    status: int = 500
    code: str = "internal-error"
    title: str = "The server failed"

    def __init__(
        self, detail: str, faults: tuple[Fault, ...] = (), headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail, faults, headers)
        self.detail = detail
        self.faults = faults
        self.headers = dict(headers or {})

    def __str__(self) -> str:
        return self.detail


class InvalidRequest(ServiceError):
    status, code, title = 422, "invalid-request", "The request does not say what this route needs"

    @classmethod
    def at(cls, pointer: str, detail: str) -> InvalidRequest:
        return cls(detail, (Fault(detail, pointer=pointer),))

    @classmethod
    def parameter(cls, name: str, detail: str) -> InvalidRequest:
        return cls(detail, (Fault(detail, parameter=name),))

    def within(self, pointer: str) -> InvalidRequest:
        """The same of a body that holds what was wrong, at this place."""
        faults = tuple(
            f if f.pointer is None else Fault(f.detail, pointer=pointer + f.pointer) for f in self.faults
        )
        return type(self)(f"{pointer}: {self.detail}", faults, self.headers)


class InvalidWorkload(InvalidRequest):
    code, title = "invalid-workload", "The workload is neither a known operator nor a valid program"


class InvalidTarget(InvalidRequest):
    code, title = "invalid-target", "The target is not one this server compiles for"


class InvalidSuggestion(InvalidRequest):
    code, title = "invalid-suggestion", "A suggested schedule does not apply to the workload"


class AmbiguousHardware(InvalidRequest):
    code, title = "ambiguous-hardware", "Workers of several kinds of hardware are attached"


class NotHttp(ServiceError):
    status, code, title = 400, "not-http", "The request is not HTTP"


class HeadTooLarge(ServiceError):
    status, code, title = 431, "head-too-large", "The request's line and headers are too long"


class MalformedJson(ServiceError):
    status, code, title = 400, "malformed-json", "The body is not JSON"


class TokenNeeded(ServiceError):
    status, code, title = 401, "token-needed", "This request needs a bearer token"


class TokenWrong(ServiceError):
    status, code, title = 401, "token-wrong", "The bearer token is not valid"


class ScopeMissing(ServiceError):
    status, code, title = 403, "scope-missing", "The token does not allow this"


class NotOwner(ServiceError):
    status, code, title = 403, "not-owner", "This belongs to somebody else"


class InFlight(ServiceError):
    status, code, title = 409, "in-flight", "A request with this idempotency key is being worked on"


class ShownOnce(ServiceError):
    status, code, title = 409, "shown-once", "What this request was answered is not kept"


class KeyReused(InvalidRequest):
    code, title = "key-reused", "The idempotency key was used for another request"


class RateLimited(ServiceError):
    status, code, title = 429, "rate-limited", "Too many requests"


class NoSchedule(ServiceError):
    status, code, title = 404, "no-schedule", "No schedule is known"


class RouteNotFound(ServiceError):
    status, code, title = 404, "route-not-found", "There is no such route"


class MethodNotAllowed(ServiceError):
    status, code, title = 405, "method-not-allowed", "This route does not take this method"


class BodyTooLarge(ServiceError):
    status, code, title = 413, "body-too-large", "The request's body is too large"


class NotJson(ServiceError):
    status, code, title = 415, "unsupported-media-type", "Bodies must be application/json"


class ProtocolRefused(ServiceError):
    status, code, title = 426, "protocol-refused", "This server does not speak the worker's protocol"


class AttachAgain(ServiceError):
    status, code, title = 409, "attach-again", "The worker must attach again"


class NotReady(ServiceError):
    status, code, title = 503, "not-ready", "The server cannot serve yet"


@dataclass(frozen=True, slots=True)
class Answer:
    """A problem document and how to send it."""

    status: int
    body: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)


# Errors of the lower layers: status, code, title, headers. Their own message is the detail: each is written
# for the person who sent the request. The first row whose class fits is taken, so a subclass stands before
# its base.
_TABLE: tuple[tuple[type[Exception], int, str, str, dict[str, str]], ...] = (
    (store.NotFound, 404, "not-found", "There is no such thing", {}),
    (store.InvalidValue, 422, InvalidRequest.code, InvalidRequest.title, {}),
    (store.QuotaExceeded, 429, "quota-exceeded", "The token may not have more", {"Retry-After": "30"}),
    (
        store.SettlementMismatch,
        422,
        "settlement-mismatch",
        "This attempt was settled with another result",
        {},
    ),
    (store.Superseded, 409, "superseded", "A newer session of this worker is attached", {}),
    (store.NameRetired, 409, "name-retired", "The worker's name was removed", {}),
    (store.LeaseLost, 409, "lease-lost", "The lease is no longer this worker's", {}),
    (store.AlreadyComplete, 409, "already-complete", "The job has used its budget up", {}),
    (store.JobOver, 409, "job-over", "The job has ended", {}),
    (store.Conflict, 409, "conflict", "The request is out of date", {}),
    (store.SchemaError, 503, "schema-mismatch", "The database is not at this server's schema", {}),
    (store.StoreFull, 507, "store-full", "The database's disk is full; nothing was stored", {}),
    (store.StoreUnavailable, 503, "store-unavailable", "The database does not answer", {"Retry-After": "1"}),
)


def answer(error: Exception, trace_id: str) -> Answer:
    """The problem document of an error. What no row knows is an internal error that shows nothing of
    itself."""
    if isinstance(error, ServiceError):
        return _document(
            error.status, error.code, error.title, error.detail, trace_id, error.faults, error.headers
        )
    if isinstance(error, MessageError):
        fault = Fault(error.message, pointer=error.pointer)
        return _document(422, InvalidRequest.code, InvalidRequest.title, str(error), trace_id, (fault,), {})
    for kind, status, code, title, headers in _TABLE:
        if isinstance(error, kind):
            return _document(status, code, title, str(error), trace_id, (), headers)
    return _document(
        500,
        ServiceError.code,
        ServiceError.title,
        f"the server failed on this request; its log tells why under trace {trace_id}",
        trace_id,
        (),
        {},
    )


def _document(
    status: int,
    code: str,
    title: str,
    detail: str,
    trace_id: str,
    faults: tuple[Fault, ...],
    headers: Mapping[str, str],
) -> Answer:
    body: dict[str, Any] = {
        "type": TYPE_PREFIX + code,
        "title": title,
        "status": status,
        "code": code,
        "detail": detail,
        "trace_id": trace_id,
    }
    if faults:
        body["errors"] = [fault.to_json() for fault in faults]
    return Answer(status, body, dict(headers))
