"""`tilewright.explain`: why a build gets the schedule that it gets."""

from __future__ import annotations

from typing import Any

from ..compiler.ir import PrimFunc, workload_key
from ..compiler.target import Target, detect
from ..db.schedule_store import ScheduleStore
from .client import Client
from .schedule_presenter import explain as explain_key
from .schedule_views import ExplanationView


def explain(
    func: PrimFunc,
    schedules: ScheduleStore | Client,
    target: str | dict[str, Any] | Target = "llvm",
    *,
    hardware: str | None = None,
) -> ExplanationView:
    """What `schedules` (see `connect`) knows of a program for a target on this machine's hardware, or that of
    a key.

    `served` is what `build(func, target, schedules=schedules)` takes, None where nothing is known: its
    `trial`, `trace`, `seconds`, `worker`, `measured_at` and the rest of its evidence. `rows` are the trials
    that could be pinned, fastest first; `duels` says how the best was decided, and `retired` what is not
    served any more. Raises ConnectionError when a server does not answer.
    """
    if not isinstance(func, PrimFunc):
        raise TypeError(f"what is explained is a PrimFunc, got {type(func).__name__}")
    if not hasattr(schedules, "best"):
        raise TypeError(f"schedules is what tilewright.connect returns, got {type(schedules).__name__}")
    key = workload_key(func), Target.parse(target).key, hardware or detect().key
    return schedules.explain(*key) if isinstance(schedules, Client) else explain_key(schedules, *key)
