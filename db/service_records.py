"""What the HTTP service keeps of requests: answers to repeat, and who did what."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """An answer as it was given: `headers` are JSON, `request` is the digest of what was asked."""

    request: str
    status: int
    headers: str
    body: str


@dataclass(frozen=True, slots=True)
class NewAudit:
    """Who did what to what, from where, and what came of it: `outcome` is `done` or a problem's code.

    `actor` is a token's id, `anonymous` or `command line`; `name` is for people.
    """

    actor: str
    name: str
    address: str
    verb: str
    subject: str
    outcome: str
    trace_id: str = ""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """An entry of the audit log; `seq` grows."""

    seq: int
    at: float
    actor: str
    name: str
    address: str
    verb: str
    subject: str
    outcome: str
    trace_id: str


@dataclass(frozen=True, slots=True)
class Census:
    """How many there are of what, at one moment.

    `queued` trials wait to be measured; `oldest_queued` is the seconds since the oldest of their jobs was
    created, 0 without any. `searches` and `search_seconds` are those of finished jobs, all together.
    """

    jobs: dict[str, int]
    workers: dict[str, int]
    leases: int
    queued: int
    started: int
    oldest_queued: float
    searches: int
    search_seconds: float
