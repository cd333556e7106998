"""Best-known schedules of the store as the API shows them."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from ..db.best_records import BestSchedule, KeptSchedule
from ..db.schedule_store import ScheduleStore
from .schedule_views import (
    DuelView,
    ExplanationView,
    NearbyView,
    PinView,
    RetirementView,
    ScheduleView,
    SearchView,
)


def schedule_view(best: BestSchedule) -> ScheduleView:
    """All that is known of a record. A trace that is damaged is shown as none."""
    off = best.kind == "default"
    said: dict[str, Any] = {
        name: None if (value := getattr(best, name)) is None else asdict(value)
        for name in ("baseline", "confirmation", "challenger", "pin")
    }
    return ScheduleView(
        kind=best.kind,
        reason=best.reason,
        workload=best.workload,
        target=best.target,
        hardware=best.hardware,
        trace=_object(best.trace),
        seconds=None if off else best.seconds,
        samples=list(best.samples),
        dispersion=None if off else best.dispersion,
        error=None if off else best.error,
        job=None if off else best.job,
        trial=None if off else best.trial,
        worker=None if off else best.worker,
        versions=_object(best.versions),
        measured_at=None if off else best.measured_at,
        codegen=None if off else best.codegen_version,
        search=SearchView(done=best.search.done, asked=best.search.asked, state=best.search.state),
        speedup=None if off else best.speedup,
        confirmed=best.confirmed,
        imported=best.imported,
        **said,
    )


def nearby_view(one: KeptSchedule) -> NearbyView:
    return NearbyView(
        schedule=schedule_view(one.schedule),
        program=one.program,
        description=one.description,
        facts=one.facts,
    )


def explain(store: ScheduleStore, workload: str, target: str, hardware: str) -> ExplanationView:
    """All that a store knows of one key."""
    key = workload, target, hardware
    served, standing = store.best(*key), store.standing(*key)
    return ExplanationView(
        workload=workload,
        target=target,
        hardware=hardware,
        served=None if served is None else schedule_view(served),
        standing=None if standing is None else schedule_view(standing),
        rows=[schedule_view(one) for one in store.rivals(*key)],
        duels=[DuelView.model_validate(asdict(one)) for one in store.duels(*key)],
        retired=[RetirementView.model_validate(asdict(one)) for one in store.retirements(*key)],
    )


def pin_view(pin: Any) -> PinView:
    return PinView.model_validate(asdict(pin))


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
