"""Lookups take the same few indexed queries, however much is stored."""

import pytest
from sqlalchemy import event, insert, text

from tilewright.db.records import PastSearch
from tilewright.db.sql.tables import attempts, trials

BY_SQLITES_PLANS = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
BY_WHAT_POSTGRES_READS = pytest.mark.parametrize("kind", ["postgres"], indirect=True)


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
    "job_summaries": lambda scene, job: scene.store.job_summaries([job.id], 60.0),
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


@BY_SQLITES_PLANS
@pytest.mark.parametrize("lookup", LOOKUPS)
def test_no_query_reads_a_whole_table_of_trials(large, scene, plans, lookup):
    LOOKUPS[lookup](scene, large)
    big = ("SCAN trials", "SCAN attempts", "SCAN events")
    scans = [step for plan in plans for step in plan if step.startswith(big)]
    assert (scans, plans != []) == ([], True)


OTHERS = 20_000
MULTIPLIED = (
    "INSERT INTO {table} ({columns}) SELECT {values} FROM {table}"
    " CROSS JOIN generate_series(0, 9) AS copies(i)"
    " WHERE {table}.{key} LIKE :job"
)


@pytest.fixture
def among_others(large, scene):
    """Beside `large`: another finished job of the same key, with ten times its trials and attempts."""
    other = scene.job(trials=OTHERS)
    scene.store.finish_job(other.id, None, "failed", "")
    changed = {
        "trials": {
            "id": f"'{other.id}.' || (i * 2000 + number)",
            "job": f"'{other.id}'",
            "number": "i * 2000 + number",
            "candidate_key": "'o' || (i * 2000 + number)",
        },
        "attempts": {"trial": f"'{other.id}.' || (i * 2000 + split_part(trial, '.', 2)::integer)"},
    }
    with scene.store._database.write() as conn:
        for table, key in ((trials, "id"), (attempts, "trial")):
            new = changed[table.name]
            columns = ", ".join(column.name for column in table.columns)
            values = ", ".join(new.get(column.name, column.name) for column in table.columns)
            statement = MULTIPLIED.format(table=table.name, columns=columns, values=values, key=key)
            settled = " AND outcome = 'ok'" if table is trials else " AND state = 'settled'"
            conn.execute(text(statement + settled), {"job": f"{large.id}.%"})
        conn.execute(text("ANALYZE"))
        assert conn.execute(text("SELECT count(*) FROM trials")).scalar_one() > OTHERS
    return large


@pytest.fixture
def rows_read(scene):
    """Rows that PostgreSQL has read of the growing tables in each transaction of the store from now on."""
    counted, begun = [], {}
    count = (
        "SELECT coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0) FROM pg_stat_xact_user_tables"
        " WHERE relname IN ('trials', 'attempts', 'events')"
    )

    def number(conn):
        cursor = conn.connection.dbapi_connection.cursor()
        (found,) = cursor.execute(count).fetchone()
        return int(found)

    def begin(conn, *_):
        begun[id(conn)] = None

    def first(conn, *_):
        if begun.get(id(conn), 0) is None:
            begun[id(conn)] = number(conn)

    def end(conn):
        if begun.get(id(conn)) is not None:
            counted.append(number(conn) - begun.pop(id(conn)))

    engine = scene.store._database.inner._engine
    hooks = {"begin": begin, "before_cursor_execute": first, "commit": end, "rollback": end}
    for name, hook in hooks.items():
        event.listen(engine, name, hook)
    yield counted
    for name, hook in hooks.items():
        event.remove(engine, name, hook)


@BY_WHAT_POSTGRES_READS
def test_what_is_counted_are_the_rows_that_were_read(among_others, scene, rows_read):
    with scene.store._database.read() as conn:
        conn.execute(text("SELECT count(seconds) FROM trials")).all()
    assert sum(rows_read) > OTHERS


@BY_WHAT_POSTGRES_READS
@pytest.mark.parametrize("lookup", LOOKUPS)
def test_no_call_reads_the_trials_of_other_jobs(among_others, scene, rows_read, lookup):
    """A call that counts or ranks reads its own job of 2 000, perhaps twice; never the 20 000 beside it."""
    LOOKUPS[lookup](scene, among_others)
    assert (sum(rows_read) <= 3 * 2_000, rows_read != []) == (True, True), rows_read


@BY_SQLITES_PLANS
@pytest.mark.parametrize("lookup", ["best", "top_trials", "trials", "trial_counts", "jobs"])
def test_the_number_of_queries_does_not_grow_with_what_is_stored(large, scene, plans, lookup):
    LOOKUPS[lookup](scene, large)
    after_many = len(plans)
    plans.clear()
    LOOKUPS[lookup](scene, scene.searched(1, tag="q"))
    plans_of_lookup = plans[-after_many:]
    assert len(plans_of_lookup) == after_many <= 2


@BY_SQLITES_PLANS
def test_the_fastest_of_many_trials_are_found(large, scene):
    assert [trial.seconds for trial in scene.store.top_trials(large.id, 3)] == [1.0, 2.0, 3.0]
