"""Lookups take the same few indexed queries, however much is stored."""

import pytest
from sqlalchemy import event, insert

from tilewright.db.records import PastSearch
from tilewright.db.sql.tables import attempts, trials

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)  # by SQLite's plans


@pytest.fixture
def large(scene):
    """A job of 2 000 settled trials, one of them best, before one of three pending trials."""
    scene.searched(3, tag="p")
    job = scene.job(trials=2_000)
    scene.store.begin_search(job.id)
    row = {
        "job": job.id,
        "batch": 0,
        "sketch": "tiled",
        "trace": "{}",
        "features": b"",
        "feature_schema": 1,
        "input_seed": 0,
        "outcome": "ok",
        "attempt": 1,
        "samples": "[]",
        "censored": False,
        "error": 0.5,
        "failure_message": "",
        "failure_detail": "{}",
        "build_seconds": 0.0,
        "wall_seconds": 0.0,
        "codegen_version": "g1",
        "created_at": 0.0,
        "settled_at": 0.0,
    }
    own = [
        {"id": f"{job.id}.{n}", "number": n, "candidate_key": f"k{n}", "seconds": 1 + n} for n in range(2_000)
    ]
    with scene.store._database.write() as conn:
        conn.execute(insert(trials), [row | each for each in own])
        settled = {"attempt": 1, "state": "settled", "granted_at": 0.0}
        conn.execute(insert(attempts), [settled | {"trial": each["id"]} for each in own])
    scene.add(job, range(2_000, 2_001))
    return job


@pytest.fixture
def plans(scene):
    """The steps of SQLite's plan for each statement that the store runs from now on."""
    steps = []

    def explain(conn, cursor, statement, parameters, context, executemany):
        if statement.startswith(("SELECT", "UPDATE", "DELETE")):
            first = parameters[0] if executemany else parameters
            plan = cursor.connection.execute(f"EXPLAIN QUERY PLAN {statement}", first)
            steps.append([detail for *_, detail in plan])

    database = scene.store._database.inner
    engines = (database._reader, database._writer)
    for engine in engines:
        event.listen(engine, "before_cursor_execute", explain)
    yield steps
    for engine in engines:
        event.remove(engine, "before_cursor_execute", explain)


LOOKUPS = {
    "best": lambda scene, job: scene.store.best("w", "t", "h"),
    "top_trials": lambda scene, job: scene.store.top_trials(job.id, 10),
    "trials": lambda scene, job: scene.store.trials(job.id, after_number=1_000, limit=100),
    "trial": lambda scene, job: scene.store.trial(f"{job.id}.7"),
    "trial_counts": lambda scene, job: scene.store.trial_counts(job.id),
    "jobs": lambda scene, job: scene.store.jobs(limit=50),
    "events": lambda scene, job: scene.store.events(job.id, after=1),
    "last event of a kind": lambda scene, job: scene.store.last_event(job.id, "best"),
    "token_by_secret": lambda scene, job: scene.store.token_by_secret("x"),
    "claim": lambda scene, job: scene.claim(scene.worker()),
    "settle": lambda scene, job: settle(scene),
    "open_work": lambda scene, job: scene.store.open_work(),
    "quarantine": lambda scene, job: scene.store.quarantine_worker(settle(scene).id, "token ops", "odd"),
    "sweep": lambda scene, job: scene.store.sweep(),
    "retire": lambda scene, job: scene.store.retire(f"{job.id}.0", "does not replay"),
    "past_trials": lambda scene, job: scene.store.past_trials("w", "t", "h", "g1", 100),
    "past_searches": lambda scene, job: scene.store.past_searches("h", "matmul", 10),
    "sampled_trials": lambda scene, job: scene.store.sampled_trials(
        PastSearch("w", "t", "h", None, 1.0), 8, 8
    ),
    "past_trials_by_id": lambda scene, job: scene.store.past_trials_by_id([f"{job.id}.7"]),
    "finish_job": lambda scene, job: scene.store.finish_job(job.id, None, "completed", ""),
}


def settle(scene):
    from tilewright.db.records import Settlement

    rig = scene.worker()
    lease = scene.claim(rig)
    for item in lease.items:
        scene.store.settle(lease.id, [Settlement(item.trial, item.attempt, failure_kind="run_error")])
    return rig


@pytest.mark.parametrize("lookup", LOOKUPS)
def test_no_query_reads_a_whole_table_of_trials(large, scene, plans, lookup):
    LOOKUPS[lookup](scene, large)
    big = ("SCAN trials", "SCAN attempts", "SCAN events")
    scans = [step for plan in plans for step in plan if step.startswith(big)]
    assert (scans, plans != []) == ([], True)


@pytest.mark.parametrize("lookup", ["best", "top_trials", "trials", "trial_counts", "jobs"])
def test_the_number_of_queries_does_not_grow_with_what_is_stored(large, scene, plans, lookup):
    LOOKUPS[lookup](scene, large)
    after_many = len(plans)
    plans.clear()
    LOOKUPS[lookup](scene, scene.searched(1, tag="q"))
    plans_of_lookup = plans[-after_many:]
    assert len(plans_of_lookup) == after_many <= 2


def test_the_fastest_of_many_trials_are_found(large, scene):
    assert [trial.seconds for trial in scene.store.top_trials(large.id, 3)] == [1.0, 2.0, 3.0]
