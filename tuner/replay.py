"""Going on with a search whose process has ended, from the trials that its store has."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import numpy as np

from ..db import records
from ..db.words import OPEN_OUTCOMES
from .candidate import Candidate, Features
from .outcome import Outcome
from .placing import Placed, place
from .session import TuningSession
from .task import TuningTask

__all__ = ["outcome_of", "resume"]


def outcome_of(trial: records.Trial) -> Outcome | None:
    """What a stored trial came to; None while it has no result."""
    if trial.outcome in OPEN_OUTCOMES:
        return None
    if trial.seconds is None:
        return Outcome(
            failure=trial.failure_kind or trial.outcome,
            message=trial.failure_message,
            of_workload=json.loads(trial.failure_detail).get("of_workload") is True,
        )
    if trial.first_seconds is not None:
        # What the final rounds found came after the search, which must not be told more than it was.
        return Outcome.timed(trial.first_seconds, samples=trial.first_samples or (), error=trial.error)
    return Outcome.timed(trial.seconds, censored=trial.censored, samples=trial.samples, error=trial.error)


def resume(
    begin: Callable[[Sequence[Candidate]], TuningSession],
    stored: Sequence[records.Trial],
    task: TuningTask,
) -> TuningSession:
    """The session that `begin` makes, brought to where the stored trials (all of the job) left off.

    A session proposes the same again when it is told the same, so it is asked again, batch by batch, and then
    stands as if it had never stopped. Where it proposes something else (another version of the compiler, the
    features or the model), the stored trials are adopted, as points of the space where they still are some,
    and the search goes on from there.
    Candidates that were asked for but not stored are in `outstanding`, numbered from len(stored).
    """
    session = begin(())
    while session.ready and session.asked < len(stored):
        known = session.asked
        batch = session.ask()
        if not _agree(batch, stored[known:]):
            return _adopted(begin, stored, session.candidates[:known], task)
        _tell(session, stored[known : known + len(batch)])
    if session.asked < len(stored):
        return _adopted(begin, stored, session.candidates, task)
    return session


def _agree(batch: Sequence[Candidate], stored: Sequence[records.Trial]) -> bool:
    """Whether what was stored is what was proposed now, as far as it was stored."""
    return bool(batch) and all(
        (candidate.key, candidate.batch) == (trial.candidate_key, trial.batch)
        for candidate, trial in zip(batch, stored, strict=False)
    )


def _adopted(
    begin: Callable[[Sequence[Candidate]], TuningSession],
    stored: Sequence[records.Trial],
    agreed: Sequence[Candidate],
    task: TuningTask,
) -> TuningSession:
    strangers = [_candidate(trial, task) for trial in stored[len(agreed) :]]
    session = begin([*agreed, *strangers])
    _tell(session, stored)
    return session


def _tell(session: TuningSession, trials: Sequence[records.Trial]) -> None:
    for trial in trials:
        outcome = outcome_of(trial)
        if outcome is not None:
            session.tell(trial.number, outcome)


def _candidate(trial: records.Trial, task: TuningTask) -> Candidate:
    """A stored trial as a point of the space as it is now, with the features of now; of what is no point of
    it only what was stored is known."""
    where = place(json.loads(trial.trace), task.space, trial.sketch)
    features: Features | None = None
    if trial.feature_schema == task.feature_schema and trial.features:
        features = np.frombuffer(trial.features, dtype="<f4")
    if isinstance(where, Placed):
        (columns,) = (s.columns for s in task.space.sketches if s.name == where.sketch)
        features = columns.features(np.array([where.row], dtype=np.int64))[0]
    return Candidate(
        number=trial.number,
        batch=trial.batch,
        sketch=where.sketch if isinstance(where, Placed) else trial.sketch,
        row=where.row if isinstance(where, Placed) else None,
        trace=trial.trace,
        key=trial.candidate_key,
        features=features,
        predicted=trial.predicted,
        origin=trial.origin,
    )
