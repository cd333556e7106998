"""What workers report of their golden kernels, and what comes of it."""

from __future__ import annotations

import json

from ..db.fleet_records import Worker
from ..db.health_records import NewHealthCheck
from ..db.store import Store
from ..measure.health import explain
from ..measure.health_messages import HealthPlan, HealthReport
from .settings import Settings

__all__ = ["plan_of", "take_first_report", "take_report"]

_SINCE_PROTOCOL = 2


def plan_of(settings: Settings, protocol: int) -> HealthPlan | None:
    """How a worker is to check itself; None for one whose protocol knows no checks."""
    if protocol < _SINCE_PROTOCOL:
        return None
    return HealthPlan(
        every=settings.golden_every,
        processes=settings.golden_processes,
        drift=settings.golden_drift,
        interval_seconds=settings.golden_interval,
    )


def take_report(store: Store, worker: str, session: str, report: HealthReport) -> Worker:
    """Store a report; the worker as it is then. The reason is made here, of the report's numbers; what a
    failed kernel says is the worker's own word, and made harmless to a terminal."""
    parts = json.dumps([part.to_json() for part in report.parts])
    words = explain(report) or ("" if report.verdict == "healthy" else f"golden kernel: {report.verdict}")
    reason = "".join(c if c.isprintable() else " " for c in words)
    return store.record_health(
        worker, session, NewHealthCheck(report.occasion, report.verdict, parts, reason)
    )


def take_first_report(store: Store, worker: Worker, report: HealthReport | None) -> Worker:
    """The report of a worker that attached before, to a server that has forgotten it."""
    if report is None or store.health_checks(worker.id, 1):
        return worker
    return take_report(store, worker.id, worker.session, report)
