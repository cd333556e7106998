"""Stored trials of earlier searches, checked: what a store holds may be damaged."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..db.records import PastTrial
from .candidate import Features
from .outcome import Outcome
from .space import TuningSpace

__all__ = ["Read", "Unreadable", "feature_count", "read", "read_all", "read_features"]


class Unreadable(ValueError):
    """A stored trial that says nothing; the text is why, without its numbers, to be counted."""


@dataclass(frozen=True, slots=True, eq=False)
class Read:
    """A stored trial of which the trace and the outcome were read. `features` None: of another schema."""

    stored: PastTrial
    trace: dict[str, Any]
    outcome: Outcome
    features: Features | None

    @property
    def seconds(self) -> float | None:
        return self.outcome.seconds


def feature_count(space: TuningSpace) -> int | None:
    """The columns of the space's feature rows; None for a space without sketches."""
    for sketch in space.sketches:
        firsts = [min(knob.domain) for knob in sketch.columns.knobs]
        return int(sketch.columns.features(np.array([firsts], dtype=np.int64)).shape[1])
    return None


def read(trial: PastTrial, feature_schema: int, columns: int) -> Read:
    """Raises Unreadable."""
    return Read(trial, _trace(trial), _outcome(trial), read_features(trial, feature_schema, columns))


def read_all(
    trials: Iterable[PastTrial], feature_schema: int, columns: int, skipped: Counter[str]
) -> list[Read]:
    """Those that can be read and speak of their own candidate; of the others the reasons are counted."""
    found = []
    for trial in trials:
        try:
            one = read(trial, feature_schema, columns)
        except Unreadable as error:
            skipped[str(error)] += 1
            continue
        if not one.outcome.of_workload:
            found.append(one)
    return found


def read_features(trial: PastTrial, feature_schema: int, columns: int) -> Features | None:
    """The feature row; None of another schema. Raises Unreadable for one that is damaged."""
    if trial.feature_schema != feature_schema or trial.features == b"":
        return None
    if not isinstance(trial.features, bytes) or len(trial.features) != 4 * columns:
        raise Unreadable("features of another length")
    row = np.frombuffer(trial.features, dtype="<f4")
    if not np.isfinite(row).all():
        raise Unreadable("features that are not finite")
    return row


def _trace(trial: PastTrial) -> dict[str, Any]:
    try:
        trace = json.loads(trial.trace)
    except (TypeError, ValueError, RecursionError):
        raise Unreadable("a trace that is not JSON") from None
    if not isinstance(trace, dict):
        raise Unreadable("a trace that is not JSON")
    return trace


def _outcome(trial: PastTrial) -> Outcome:
    seconds = trial.seconds
    if seconds is not None:
        if isinstance(seconds, bool) or not isinstance(seconds, int | float):
            raise Unreadable("a time that is no number")
        if not (math.isfinite(seconds) and seconds > 0):
            raise Unreadable("a time that is not above zero")
        return Outcome.timed(float(seconds), censored=trial.outcome == "censored", error=trial.error)
    return Outcome(
        failure=trial.failure_kind or trial.outcome,
        message=str(trial.failure_message),
        of_workload=_of_workload(trial.failure_detail),
    )


def _of_workload(detail: str) -> bool:
    try:
        said = json.loads(detail)
    except (TypeError, ValueError, RecursionError):
        raise Unreadable("a failure that is not JSON") from None
    return isinstance(said, dict) and said.get("of_workload") is True
