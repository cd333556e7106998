"""Copies of whole databases, from either kind into either kind; looking a database over."""

import gzip
import json
import sqlite3
import sys
from pathlib import Path

import pytest
from sqlalchemy import text, update

from tilewright.db import (
    Conflict,
    InvalidValue,
    SchemaError,
    backup,
    check,
    check_downgrade,
    downgrade,
    open_store,
    restore,
    upgrade,
)
from tilewright.db.sql.schema import SCHEMA
from tilewright.db.sql.tables import jobs, metadata, schedules, trials
from tilewright.db.upkeep import Problem

sys.path.insert(0, str(Path(__file__).parent))

from filling import fill, rows_of


@pytest.fixture
def full(scene):
    fill(scene)
    return scene


@pytest.fixture(params=["sqlite", "postgres"])
def other(request, tmp_path):
    """The url of an empty database of either kind."""
    if request.param == "postgres":
        return request.getfixturevalue("empty_postgres_url")
    return f"sqlite:///{tmp_path}/other.db"


def all_rows(url):
    with open_store(url, create=False) as store, store._database.read() as conn:
        return rows_of(conn)


def test_every_table_has_rows_once_it_is_filled(full):
    assert [name for name, rows in all_rows(full.url).items() if not rows] == []


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz"])
def test_a_portable_backup_is_restored_into_either_kind_of_database(full, other, tmp_path, suffix):
    copied = backup(full.url, tmp_path / f"copy.{suffix}", portable=True)
    assert restore(tmp_path / f"copy.{suffix}", other) == copied
    assert all_rows(other) == all_rows(full.url)
    assert check(other) == check(full.url)


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_a_backup_of_sqlite_is_a_database_which_either_kind_takes(full, other, tmp_path):
    copied = backup(full.url, tmp_path / "copy.db")
    assert all_rows(f"sqlite:///{tmp_path}/copy.db") == all_rows(full.url)
    assert restore(tmp_path / "copy.db", other).rows == copied.rows
    assert all_rows(other) == all_rows(full.url)


def test_what_counts_up_goes_on_behind_restored_rows(full, other, tmp_path):
    backup(full.url, tmp_path / "copy", portable=True)
    restore(tmp_path / "copy", other)
    with open_store(other) as store:
        assert store.jobs().items[0].id != (new := full.__class__(store, other).job()).id
        assert store.jobs().items[0].id == new.id


def test_a_backup_is_of_one_moment(full, tmp_path, monkeypatch):
    from tilewright.db.sql.upkeep import backup as module

    inner = module._lines

    def while_others_write(conn, table):
        full.store.put_target(f"while-{table.name}", "{}")
        return inner(conn, table)

    monkeypatch.setattr(module, "_lines", while_others_write)
    backup(full.url, tmp_path / "copy", portable=True)
    assert "while-" not in (tmp_path / "copy").read_text()


@pytest.mark.parametrize("portable", [True, False])
def test_a_backup_is_its_owners_alone_and_never_takes_the_place_of_a_file(full, tmp_path, portable):
    path = tmp_path / "copy"
    backup(full.url, path, portable)
    before = path.read_bytes()
    with pytest.raises(Conflict) as refused:
        backup(full.url, path)
    assert str(refused.value) == f"{path} is there already: name a new file"
    assert (path.read_bytes(), oct(path.stat().st_mode & 0o777)) == (before, "0o600")
    assert [each.name for each in tmp_path.iterdir() if "partial" in each.name] == []


def test_a_database_with_rows_is_not_overwritten_unless_that_is_said(full, tmp_path):
    backup(full.url, tmp_path / "copy", portable=True)
    before = all_rows(full.url)
    full.store.put_target("later", "{}")
    with pytest.raises(Conflict, match=r"holds rows already .*targets.*: name an empty database, or "):
        restore(tmp_path / "copy", full.url)
    full.store.close()
    restore(tmp_path / "copy", full.url, replace=True)
    assert all_rows(full.url) == before


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda lines: lines[: len(lines) // 2], "ends before its end: it is not whole"),
        (lambda lines: lines[:-1], "ends before its end: it is not whole"),
        (lambda lines: [lines[0].replace(b"1", b"7", 1), *lines[1:]], "is no backup of tilewright"),
        (lambda lines: [line.replace(b"matmul", b"matmal") for line in lines], "its digest differs"),
        (lambda lines: [*lines[:3], b"[1]\n", *lines[3:]], "has a row of 1 values in a table of"),
        (lambda lines: [*lines[:3], b"\xff{\n", *lines[3:]], "is no backup of tilewright, or a damaged one"),
        (lambda lines: [], "is no backup of tilewright"),
    ],
)
@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_a_damaged_backup_is_refused_and_changes_nothing(full, other, tmp_path, harm, said):
    backup(full.url, tmp_path / "copy", portable=True)
    lines = (tmp_path / "copy").read_bytes().splitlines(keepends=True)
    (tmp_path / "copy").write_bytes(b"".join(harm(lines)))
    with pytest.raises(InvalidValue, match=said):
        restore(tmp_path / "copy", other)
    with open_store(other) as store:
        assert store.jobs().items == ()


def test_a_compressed_backup_that_was_cut_off_is_refused(full, tmp_path):
    backup(full.url, tmp_path / "copy.gz", portable=True)
    path = tmp_path / "copy.gz"
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(InvalidValue, match=r"damaged|not whole"):
        restore(path, f"sqlite:///{tmp_path}/other.db")


def test_a_backup_of_a_newer_program_is_refused(tmp_path):
    (tmp_path / "copy").write_text('{"tilewright_backup": 1, "schema": "9999"}\n{"end": 0}\n')
    with pytest.raises(SchemaError, match="has schema 9999, newer than this program's"):
        restore(tmp_path / "copy", f"sqlite:///{tmp_path}/other.db")


def test_a_backup_of_an_older_schema_is_restored_and_upgraded(full, other, tmp_path):
    full.store.close()
    downgrade(full.url, "0004")
    with pytest.raises(SchemaError, match="has schema 0004, older than"):
        backup(full.url, tmp_path / "refused", portable=True)
    lines = [
        '{"tilewright_backup":1,"schema":"0001"}',
        '{"table":"targets","columns":["key","description","created_at"]}',
        '["t","{}",1.5]',
    ]
    import hashlib

    whole = "".join(f"{line}\n" for line in lines)
    end = json.dumps({"end": 1, "sha256": hashlib.sha256(whole.encode()).hexdigest()})
    (tmp_path / "old.gz").write_bytes(gzip.compress(f"{whole}{end}\n".encode()))
    restore(tmp_path / "old.gz", other)
    with open_store(other) as store:
        assert (store.schema_version(), store.target("t").created_at) == (SCHEMA.head, 1.5)


@pytest.mark.parametrize("to", [f"{n:04d}" for n in range(1, int(SCHEMA.head))])
def test_rows_survive_going_back_to_any_schema_and_forward_again(full, to):
    """What the older schema knows of a row is kept; its tables and columns are discovered."""
    with full.store._database.read() as conn:
        before = rows_of(conn)
    full.store.close()
    assert downgrade(full.url, to) == (SCHEMA.head, to)
    known = columns_of(full.url)
    assert upgrade(full.url) == (to, SCHEMA.head)
    after = all_rows(full.url)
    for table in metadata.sorted_tables:
        kept = [i for i, column in enumerate(table.columns) if column.name in known.get(table.name, ())]
        if kept:
            assert columns(after[table.name], kept) == columns(before[table.name], kept), table.name


def columns(rows, kept):
    return sorted(repr([row[i] for i in kept]) for row in rows)


def columns_of(url):
    from sqlalchemy import create_engine, inspect

    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    found = inspect(engine)
    known = {name: {c["name"] for c in found.get_columns(name)} for name in found.get_table_names()}
    engine.dispose()
    return known


def test_a_schema_that_is_not_before_is_refused(full):
    full.store.close()
    for to in ("0000", "9999", "base", "4"):
        for call in (check_downgrade, downgrade):
            with pytest.raises(InvalidValue, match="must be a schema between 0001 and"):
                call(full.url, to)


def test_to_ask_whether_a_schema_is_before_changes_nothing(full):
    full.store.close()
    before = all_rows(full.url)
    check_downgrade(full.url, "0001")
    assert all_rows(full.url) == before


def test_a_database_that_was_used_is_in_order(full):
    assert [p for p in check(full.url) if p.rule.startswith(("a ", "an ", "events", "the"))] == []


HARMS = {
    "a best-known schedule rests on a checked trial of its key": lambda job: (
        update(trials).where(trials.c.id == f"{job}.0").values(outcome="censored")
    ),
    "a best-known schedule has its trial's seconds": lambda job: update(schedules).values(seconds=9.0),
    "a job has counted its measured trials": lambda job: update(jobs).where(jobs.c.id == job).values(done=77),
    "events of a job have no gaps": lambda job: text(
        f"UPDATE events SET seq = 99 WHERE job = '{job}' AND seq = 2"
    ),
    "an attempt that is not over has an open lease": lambda job: text(
        "UPDATE attempts SET state = 'ran' WHERE state IN ('lost', 'returned')"
    ),
    "a started trial has an attempt that is not over": lambda job: text(
        f"UPDATE trials SET outcome = 'started' WHERE id = '{job}.5'"
    ),
    "a success has the attempt that settled it": lambda job: text(
        f"UPDATE attempts SET state = 'returned' WHERE trial = '{job}.0'"
    ),
    "trials.trace is JSON": lambda job: text(f"UPDATE trials SET trace = '{{' WHERE id = '{job}.2'"),
}


@pytest.mark.parametrize("rule", HARMS)
def test_what_must_never_be_is_found_by_its_rule(full, rule):
    job = next(job.id for job in full.store.jobs().items if job.origin == "http")
    before = {problem.rule for problem in check(full.url)}
    with full.store._database.write() as conn:
        conn.execute(HARMS[rule](job))
    assert rule not in before
    assert rule in {problem.rule for problem in check(full.url)}


def test_a_workload_that_is_not_what_its_key_says_is_named(full):
    def key_of(program):
        raise ValueError("is no program")

    assert Problem("a workload is a program", "w: is no program") in check(full.url, key_of)
    assert Problem("a workload's key is that of its program", "w should be x") in check(
        full.url, lambda program: "x"
    )


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_a_row_that_refers_to_nothing_is_named(full):
    full.store.close()
    path = full.url.removeprefix("sqlite:///")
    conn = sqlite3.connect(path)
    conn.execute("DELETE FROM targets WHERE key = 't'")
    conn.commit()
    conn.close()
    assert Problem(
        "the database is intact", "jobs row 1 refers to a row of targets that is not there"
    ) in check(full.url)
