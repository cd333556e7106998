"""The same calls on a store with few trials and on one with many: what the database does for them, by its own
count, is the same."""

import contextlib
import shutil
from collections import defaultdict

import pytest
from bench.store_work import Work, lookups, round_of_a_worker
from bench.stored import all_local, fill, job_id, sizes, some_local
from sqlalchemy import Engine, event, text

from tilewright.db.sql import sqlite_database
from tilewright.db.sql.store import SqlStore

FEW = sizes(1_000)
MANY = [*FEW, *[100] * 490]  # and ten times the jobs
GROWTH = {"sqlite": 1.1, "postgres": 2.0}
"""The indices of 50 000 rows are a level deeper, which counts where pages are counted."""
PAGES = """
    SELECT sum(heap_blks_read + heap_blks_hit + coalesce(idx_blks_read + idx_blks_hit, 0))
    FROM pg_statio_user_tables
"""


@pytest.fixture
def stores(kind, request, blank, tmp_path, monkeypatch):
    """Opens stores of their own with jobs of so many trials, until the test ends."""
    monkeypatch.setattr(sqlite_database, "_SYNCHRONOUS", "OFF")
    with contextlib.ExitStack() as stack:

        def filled(counts, is_local=some_local):
            if kind == "postgres":
                server = request.getfixturevalue("postgres")
                name = server.database(request.getfixturevalue("postgres_blank"))
                stack.callback(server.drop, name)
                url = server.url(name)
            else:
                url = f"sqlite:///{shutil.copy(blank, tmp_path / f'{sum(counts)}.db')}"
            store = stack.enter_context(SqlStore.open(url))
            fill(store, counts, is_local)
            return store

        yield filled


class Steps:
    """Steps of SQLite's machine."""

    def __init__(self, store):
        self._steps = 0
        for engine in (store._database.inner._reader, store._database.inner._writer):
            event.listen(engine, "begin", self._watch)

    def count(self):
        return self._steps

    def _watch(self, conn):
        conn.connection.dbapi_connection.set_progress_handler(self._step, 1)

    def _step(self):
        self._steps += 1
        return 0


class Pages:
    """Pages of tables and indices that PostgreSQL has looked at."""

    def __init__(self, store):
        self._database = store._database

    def count(self):
        with self._database.read() as conn:  # on the connection that made the call
            conn.execute(text("SELECT pg_stat_force_next_flush()"))
        with self._database.read() as conn:
            conn.execute(text("SELECT pg_stat_clear_snapshot()"))
            return int(conn.execute(text(PAGES)).scalar_one())


@pytest.fixture
def effort(kind):
    """What counts the effort of a store."""
    return {"sqlite": Steps, "postgres": Pages}[kind]


def effort_of(counter, call):
    before = counter.count()
    call()
    return counter.count() - before


def efforts(store, counter, repeats=5):
    """The least that each call took of a few: what happens now and then, such as a page that splits, is none
    of the store's size."""
    taken = defaultdict(list)
    with Work(store, "h", 1) as work, Work(store, "ten", 10) as ten:
        claims = {"claim of nothing": work.claim, "claim, 10 jobs wait": ten.claim, "release": ten.release}
        for _ in range(repeats):
            for calls in (round_of_a_worker(work), claims, lookups(store)):
                for name, call in calls.items():
                    taken[name].append(effort_of(counter, call))
    return {name: min(numbers) for name, numbers in taken.items()}


@pytest.mark.slow
@pytest.mark.parametrize("is_local", [some_local, all_local])
def test_no_call_does_more_with_fifty_times_the_trials(stores, effort, kind, is_local):
    filled = [stores(counts, is_local) for counts in (FEW, MANY)]
    few, many = (efforts(store, effort(store)) for store in filled)
    grown = {name: (few[name], many[name]) for name in few if many[name] > GROWTH[kind] * few[name] + 20}
    assert grown == {}


@pytest.mark.slow
def test_what_is_counted_grows_with_what_is_read(stores, effort):
    store = stores(MANY)

    def read_all():
        with store._database.read() as conn:
            conn.execute(text("SELECT sum(seconds) FROM trials")).all()

    assert effort_of(effort(store), read_all) > 1_000


class Queries:
    """Counts statements of a store, the most values that one of them was given, and the rows they brought."""

    def __init__(self, store):
        self._numbers = [0, 0, 0]
        inner = store._database.inner
        for engine in {id(e): e for e in vars(inner).values() if isinstance(e, Engine)}.values():
            event.listen(engine, "begin", self._watch)
            event.listen(engine, "before_cursor_execute", self._said)

    def of(self, call):
        self._numbers = [0, 0, 0]
        call()
        return tuple(self._numbers)

    def _watch(self, conn):
        driver = conn.connection.dbapi_connection
        driver.row_factory = self._row if conn.dialect.name == "sqlite" else self._rows

    def _said(self, conn, cursor, statement, parameters, context, many):
        self._numbers[0] += 1
        self._numbers[1] = max(
            self._numbers[1], *(len(row) for row in (parameters if many else [parameters]))
        )

    def _row(self, cursor, row):
        self._numbers[2] += 1
        return row

    def _rows(self, cursor):
        return lambda values: self._row(cursor, tuple(values))


def queries(store):
    counter = Queries(store)
    with Work(store, "h", 1) as work:
        calls = round_of_a_worker(work) | lookups(store)
        for call in calls.values():  # the first time, a job begins to run
            call()
        return {name: counter.of(call) for name, call in (calls | of_a_large_job(store)).items()}


def of_a_large_job(store):
    best = store.best("w0", "t", "h").trial
    return {
        "summary of a job": lambda: store.job_summaries([job_id(0)], 60.0),
        "trials by id": lambda: store.past_trials_by_id([best]),
        "retire": lambda: store.retire(best, "does not replay"),
        "extend": lambda: store.extend_job(job_id(0), trials=100_000),
        "resume": lambda: store.resume_job(job_id(0)),
        "begin": lambda: store.begin_search(job_id(0)),
        "pause": lambda: store.pause_job(job_id(0)),
        "cancel": lambda: store.finish_job(job_id(0), None, "cancelled", ""),
    }


@pytest.mark.slow
def test_the_queries_about_a_job_of_50_000_trials_are_those_about_one_of_1_000(stores):
    """As many statements, of as few values, with as many rows."""
    few, many = (queries(stores([count])) for count in (1_000, 50_000))
    assert many == few
    assert many["page of 100 trials"][-1] == 1 + 100  # the job, and its trials
    assert max(values for _, values, _ in many.values()) < 100


@pytest.mark.slow
def test_a_large_job_is_forgotten_by_statements_that_sqlite_takes_in_any_version(stores):
    """Before 3.32, released in 2020, it took at most 999 values (SQLITE_MAX_VARIABLE_NUMBER)."""
    store = stores([50_000])
    counter = Queries(store)
    statements, values, _ = counter.of(lambda: store.prune(0.0))
    assert (values <= 999, statements < 50_000 / 50) == (True, True)
