"""What a store knows that helps a new search."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import rfc8785

from ..db.errors import NotFound
from ..db.records import PastSearch
from ..db.store import Store
from .candidate import Features
from .past import Read, feature_count, read_all
from .placing import Misplaced, Placed, place
from .related import Related, distance, transferred
from .suggested import SUGGESTED
from .task import Structure, TuningTask
from .warm_start import Snapshot, features_of

__all__ = ["look_back"]

SEARCHES = 32
"""Of at most so many other searches something is learned."""

FASTEST = 16
OTHERS = 16
"""The trials of one search that are learned from: its fastest, and some others that it began with, for a
model must know the slow ones, too."""

RENEWED = 8
"""The trials of so many searches at most are described anew in features of this schema, where they have
those of another: some tens of milliseconds each, once."""

REPLAYED_OF_EACH = 8
"""Of those that are no points of their space any more, so many of one search."""

KNOWN = 4096
"""The most trials of its own workload that a search takes as done."""


def look_back(store: Store, task: TuningTask, hardware: str) -> Snapshot:
    """What the store knows now that helps a search of this task on this hardware.

    Trials of exactly its workload, target, hardware and version of the code generator are known: they count
    as done, in points of the space as it is now. From those that are no points, and from trials of other
    searches, the cost model learns, if they have features of this schema. What is damaged is skipped.
    """
    skipped: Counter[str] = Counter()
    width = feature_count(task.space)
    if width is None:
        return Snapshot()
    stored = store.past_trials(task.workload_key, task.target_key, hardware, task.codegen, KNOWN)
    own = _latest(read_all(stored, task.feature_schema, width, skipped))
    where = {one.stored.id: place(one.trace, task.space, one.stored.sketch) for one in own}
    known = [one for one in own if _is_done(one, where[one.stored.id])]
    apart = [one for one in own if not _is_done(one, where[one.stored.id])]
    reasons = Counter(w.reason for w in (where[one.stored.id] for one in apart) if isinstance(w, Misplaced))
    groups, related = _others(store, task, hardware, {one.id for one in stored}, width, skipped)
    learned = [_scored(list(_thinned(group))) for group in groups]
    with_features = features_of(apart, task)
    learned.append(_scored([one for one in apart if one.stored.id in with_features]))
    extents = task.structure.extents if task.structure else ()
    return Snapshot(
        known=tuple((one.stored.id, one.seconds) for one in known),
        prior=tuple((one, score, group) for group, rows in enumerate(learned) for one, score in rows),
        transferred=tuple((point.sketch, point.row) for point in transferred(task.space, extents, related)),
        not_applicable=dict(sorted(reasons.items())),
        skipped=dict(sorted(skipped.items())),
    )


def _is_done(one: Read, where: Placed | Misplaced) -> bool:
    """Whether a trial counts as done: as a point of this space, or as what a user asked for."""
    return isinstance(where, Placed) or one.stored.sketch == SUGGESTED


def _latest(trials: Sequence[Read]) -> list[Read]:
    """Of trials of one candidate the newest: jobs that ignore the history measure one again."""
    newest = {one.stored.candidate_key: one.stored.id for one in trials}
    return [one for one in trials if newest[one.stored.candidate_key] == one.stored.id]


def _others(
    store: Store, task: TuningTask, hardware: str, own: set[str], width: int, skipped: Counter[str]
) -> tuple[list[list[Read]], list[Related]]:
    """The trials of other searches that have features of this schema, by search, and what may be taken over
    from those that have the like structure."""
    mine = task.structure
    if mine is not None:
        program = rfc8785.dumps(task.workload).decode()
        store.put_workload(task.workload_key, task.name, program, task.script)
        store.put_structure(task.workload_key, mine.key)
    own_key = (task.workload_key, task.target_key, hardware)
    groups, related = [], []
    renewed = 0
    for search in store.past_searches(hardware, mine.key if mine else "", SEARCHES + 1):
        sample = [one for one in store.sampled_trials(search, FASTEST, 2 * OTHERS) if one.id not in own]
        read = read_all(sample, task.feature_schema, width, skipped)
        if renewed < RENEWED and any(one.features is None for one in read):
            renewed += 1
            read = _renewed(store, task, search, read)
        known = [one for one in read if one.features is not None]
        if missing := len(read) - len(known):
            skipped["features of another schema"] += missing
        if known:
            groups.append(known)
        if (search.workload, search.target, search.hardware) != own_key:
            related.append(_related(store, task, search, read, hardware))
    return groups[:SEARCHES], related


def _renewed(store: Store, task: TuningTask, search: PastSearch, trials: Sequence[Read]) -> list[Read]:
    """The same trials, those of another schema with features of this one: as points of their space as it is
    now, or replayed. Kept in the store, so that it is done once."""
    if task.open_other is None:
        return list(trials)
    try:
        program, target = store.workload(search.workload).program, store.target(search.target).description
    except NotFound:
        return list(trials)
    other = task.open_other(program, target)
    if other is None:
        return list(trials)
    columns = {sketch.name: sketch.columns for sketch in other.space.sketches}
    rows: dict[str, Features] = {}
    apart: list[Read] = []
    for one in (one for one in trials if one.features is None):
        where = place(one.trace, other.space, one.stored.sketch)
        if isinstance(where, Placed):
            row = np.array([where.row], dtype=np.int64)
            rows[one.stored.id] = columns[where.sketch].features(row)[0]
        else:
            apart.append(one)
    rows |= features_of(apart[:REPLAYED_OF_EACH], other)
    store.put_features(
        {trial: row.astype("<f4").tobytes() for trial, row in rows.items()}, task.feature_schema
    )
    return [replace(one, features=rows.get(one.stored.id, one.features)) for one in trials]


def _related(
    store: Store, task: TuningTask, search: PastSearch, trials: Sequence[Read], hardware: str
) -> Related:
    mine, structure = task.structure, _structure(store, task, search)
    alike = mine is not None and structure is not None and structure.key == mine.key
    extents = structure.extents if structure is not None else ()
    apart = distance(mine.extents, extents) if mine is not None and alike else 0.0
    near = (float(search.hardware != hardware), float(search.target != task.target_key), apart)
    return Related(_by_seconds(trials), extents, alike, near)


def _structure(store: Store, task: TuningTask, search: PastSearch) -> Structure | None:
    """That of another workload. A store of before structures were kept learns it here, once."""
    if task.structure_of is None or (
        search.structure is not None and task.structure is not None and search.structure != task.structure.key
    ):
        return None
    try:
        found = task.structure_of(json.loads(store.workload(search.workload).program))
    except (NotFound, ValueError, RecursionError):
        return None
    if found is not None and search.structure is None:
        store.put_structure(search.workload, found.key)
    return found


def _by_seconds(trials: Sequence[Read]) -> list[Read]:
    """Those with a time of their own, the fastest first."""
    timed = [(one.seconds, n, one) for n, one in enumerate(trials) if one.outcome.exact and one.seconds]
    return [one for _, _, one in sorted(timed, key=lambda entry: entry[:2])]


def _thinned(trials: Sequence[Read]) -> list[Read]:
    """The fastest of a search and some of its others, evenly, in their stored order."""
    fastest = _by_seconds(trials)[:FASTEST]
    chosen = {one.stored.id for one in fastest}
    others = [one for one in trials if one.stored.id not in chosen]
    step = -(-len(others) // OTHERS) or 1
    chosen |= {one.stored.id for one in others[::step]}
    return [one for one in trials if one.stored.id in chosen]


def _scored(trials: Sequence[Read]) -> list[tuple[str, float]]:
    """Ids with the best time of these trials over their own; 0 for a failure."""
    best = min((one.seconds for one in trials if one.seconds is not None), default=None)
    return [
        (one.stored.id, 0.0 if one.seconds is None or best is None else best / one.seconds) for one in trials
    ]
