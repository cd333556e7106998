"""What a search knows before its first trial: from the store's records of its workload and of others."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import rfc8785

from ..db.records import Known
from ..db.store import HistoryStore
from .candidate import Candidate, Features
from .errors import NotReplayable
from .outcome import Trial
from .past import Read, feature_count, read_all
from .placing import Misplaced, Placed, place
from .prior import Prior
from .task import TuningTask

__all__ = ["REPLAYED", "Snapshot", "WarmStart", "features_of", "recall"]

VERSION = 1
"""Of the snapshots: another one says nothing."""

REPLAYED = 64
"""So many schedules that are no points of the space are replayed for their features, where a trial was stored
with those of an older schema: some milliseconds each."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What of a store a search began with, by trial ids: a search that is resumed begins with the same,
    whatever was recorded since.

    known: id and seconds (None: it failed) of trials of exactly this workload, target, hardware and version
    of the code generator. prior: id, score and group of trials that only the cost model learns from.
    transferred: sketch and row. not_applicable: trials of this workload that are no points of its space now,
    by reason. skipped: records that cannot be used at all, by reason.
    """

    known: tuple[tuple[str, float | None], ...] = ()
    prior: tuple[tuple[str, float, int], ...] = ()
    transferred: tuple[tuple[str, tuple[int, ...]], ...] = ()
    not_applicable: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> str:
        plain = json.loads(json.dumps({"version": VERSION, **asdict(self)}))
        return rfc8785.dumps(plain).decode()

    @classmethod
    def from_json(cls, text: str) -> Snapshot:
        said = json.loads(text)
        if said.get("version") != VERSION:
            return cls()
        return cls(
            known=tuple((one, seconds) for one, seconds in said["known"]),
            prior=tuple((one, score, group) for one, score, group in said["prior"]),
            transferred=tuple((sketch, tuple(row)) for sketch, row in said["transferred"]),
            not_applicable=said["not_applicable"],
            skipped=said["skipped"],
        )

    def says(self) -> dict[str, Any]:
        """The data of a `warm_start` event."""
        searches = len({group for _, _, group in self.prior})
        return {
            "known": len(self.known),
            "learned_from": {"trials": len(self.prior), "searches": searches},
            "transferred": len(self.transferred),
            "not_applicable": self.not_applicable,
            "skipped": self.skipped,
        }

    @property
    def counts(self) -> Known:
        """How many trials of the budget are done, and which was the fastest (the earliest of equals)."""
        timed = [(seconds, n, one) for n, (one, seconds) in enumerate(self.known) if seconds is not None]
        return Known(len(self.known), min(timed)[2] if timed else None)


@dataclass(frozen=True, slots=True, eq=False)
class WarmStart:
    """What a session is given of a snapshot."""

    known: tuple[Trial, ...] = ()
    prior: Prior | None = None
    transferred: tuple[Placed, ...] = ()


def recall(snapshot: Snapshot, store: HistoryStore, task: TuningTask) -> WarmStart:
    """The trials of a snapshot, read back, as far as they are still there."""
    width = feature_count(task.space)
    if width is None:
        return WarmStart()
    ids = [one for one, _ in snapshot.known] + [one for one, _, _ in snapshot.prior]
    stored = read_all(store.past_trials_by_id(ids), task.feature_schema, width, Counter())
    read = {one.stored.id: one for one in stored}
    known = [_at(read[one], seconds) for one, seconds in snapshot.known if one in read]
    legal = [p for p in (Placed(*point) for point in snapshot.transferred) if _is_point(p, task)]
    return WarmStart(_known_trials(known, task), _prior(snapshot, read, task), tuple(legal))


def features_of(trials: Iterable[Read], task: TuningTask) -> dict[str, Features]:
    """Feature rows by trial id, of this schema: as stored, else, for a few, of the replayed schedule."""
    found: dict[str, Features] = {}
    replayed = 0
    for one in trials:
        if one.features is not None:
            found[one.stored.id] = one.features
        elif task.replay is not None and replayed < REPLAYED:
            replayed += 1
            try:
                features = task.replay(one.trace).features
            except NotReplayable:
                continue
            if features is not None:
                found[one.stored.id] = features
    return found


def _at(one: Read, seconds: float | None) -> Read:
    """The trial with the time that it had in the snapshot: final rounds may have corrected it since."""
    if seconds is None or one.outcome.seconds is None:
        return one
    return replace(one, outcome=replace(one.outcome, seconds=seconds))


def _known_trials(known: Sequence[Read], task: TuningTask) -> tuple[Trial, ...]:
    """As trials of a session, with numbers below 0, in points and features of the space as it is now."""
    columns = {sketch.name: sketch.columns for sketch in task.space.sketches}
    trials = []
    for number, one in enumerate(known, start=-len(known)):
        where = place(one.trace, task.space, one.stored.sketch)
        point = None if isinstance(where, Misplaced) else where
        features = one.features
        if features is None and point is not None:
            features = columns[point.sketch].features(np.array([point.row], dtype=np.int64))[0]
        candidate = Candidate(
            number=number,
            batch=-1,
            sketch=one.stored.sketch if point is None else point.sketch,
            row=None if point is None else point.row,
            trace=one.stored.trace,
            key=one.stored.candidate_key,
            features=features,
            origin="known",
        )
        trials.append(Trial(candidate, one.outcome))
    return tuple(trials)


def _prior(snapshot: Snapshot, read: dict[str, Read], task: TuningTask) -> Prior | None:
    features = features_of((read[one] for one, _, _ in snapshot.prior if one in read), task)
    rows = [(features[one], score, group) for one, score, group in snapshot.prior if one in features]
    if not rows:
        return None
    searches = len({group for _, _, group in rows})
    return Prior(
        features=np.stack([row for row, _, _ in rows]).astype(np.float32),
        scores=np.array([score for _, score, _ in rows], dtype=np.float32),
        groups=np.array([group for _, _, group in rows], dtype=np.int64),
        says=f"{len(rows)} trials of {searches} earlier search{'es' if searches > 1 else ''}",
        schema=task.feature_schema,
    )


def _is_point(point: Placed, task: TuningTask) -> bool:
    for sketch in task.space.sketches:
        if sketch.name == point.sketch and len(point.row) == len(sketch.columns.knobs):
            domains = [knob.domain for knob in sketch.columns.knobs]
            inside = all(value in domain for value, domain in zip(point.row, domains, strict=True))
            return inside and bool(sketch.columns.valid(np.array([point.row], dtype=np.int64))[0])
    return False
