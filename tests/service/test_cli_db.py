"""`tilewright db` on both kinds of database, with rows in them."""

import contextlib
import json

import pytest

from tilewright.db import downgrade, open_store
from tilewright.db.fleet_records import NewWorker
from tilewright.db.records import NewJob, NewTrial, Settlement
from tilewright.db.retention_store import KEPT_JOBS
from tilewright.service.cli import run


@pytest.fixture
def tw(capsys, monkeypatch):
    """Runs a command in this process, which nobody types to: its exit code, stdout and stderr."""
    monkeypatch.setenv("COLUMNS", "120")

    def command(*arguments):
        code = run([str(each) for each in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return command


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path):
    """A database with a completed job of three trials, of which the first is best-known."""
    in_file = f"sqlite:///{tmp_path}/tilewright.db"
    where = in_file if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    with open_store(where) as store:
        tuned(store)
    return where


@pytest.fixture(params=["sqlite", "postgres"])
def empty(request, tmp_path):
    return (
        f"sqlite:///{tmp_path}/empty.db"
        if request.param == "sqlite"
        else request.getfixturevalue("empty_postgres_url")
    )


def tuned(store, tag="c"):
    store.put_workload("w", "matmul", "{}", "")
    store.put_target("t", "{}")
    store.put_hardware("h", "{}")
    job = store.create_job(NewJob("w", "t", "h", 3, None, 0, "guided", 60.0, "http", "{}"))
    store.begin_search(job.id)
    store.add_trials(job.id, 1, [NewTrial(n, 0, f"{tag}{n}", "tiled", "{}", b"", 1, 0) for n in range(3)])
    worker = store.register_worker(NewWorker("rig", "s", "h", 1, "{}", "{}", "g1"))
    lease = store.claim(worker.id, "s", "h", 8, 30.0)
    results = [
        Settlement(i.trial, i.attempt, 1.0 + i.number, (1.0 + i.number,), error=0.5) for i in lease.items
    ]
    store.settle(lease.id, results)
    return store.finish_job(job.id, None, "completed", "")


def name_of(url):
    """What messages call the database."""
    with open_store(url, create=False) as store:
        return store._database.name


def shown(url):
    return url.replace(":secret@", ":***@")


def seen(url):
    """The best of the workload, and the trials behind it."""
    with open_store(url, create=False) as store:
        jobs = store.jobs().items
        trials = [trial for job in jobs for trial in store.trials(job.id)]
        return store.best("w", "t", "h"), jobs, trials


def head(url):
    with open_store(url, create=False) as store:
        return store.schema_version()


def same_numbers(before, after):
    """Times and outcomes, which every schema has."""
    return [(t.id, t.seconds, t.outcome, t.samples) for t in before[2]] == [
        (t.id, t.seconds, t.outcome, t.samples) for t in after[2]
    ] and (before[0].trial, before[0].seconds) == (after[0].trial, after[0].seconds)


def test_an_older_database_is_refused_and_upgraded_with_what_is_in_it(url, tw):
    before, newest = seen(url), head(url)
    downgrade(url, "0004")
    code, _, said = tw("token", "list", "--db", url)
    assert (code != 0, "0004" in said, "db upgrade" in said) == (True, True, True)
    assert tw("db", "upgrade", "--db", url) == (0, f"{shown(url)}: schema 0004 to {newest}\n", "")
    assert same_numbers(before, seen(url))
    assert tw("db", "upgrade", "--db", url) == (0, f"{shown(url)} is at schema {newest} already\n", "")


def test_going_back_needs_a_yes_and_keeps_what_the_older_schema_knows(url, tw):
    before, newest = seen(url), head(url)
    code, out, err = tw("db", "downgrade", "--to", "0005", "--db", url)
    assert (code, out) == (64, "")
    assert "loses what schema 0005 has no place for; make a backup first. Go on? Say --yes" in err
    assert head(url) == newest
    code, out, err = tw("db", "downgrade", "--to", "0005", "--yes", "--db", url, "--json")
    assert (code, json.loads(out), err) == (0, {"db": shown(url), "before": newest, "after": "0005"}, "")
    tw("db", "upgrade", "--db", url)
    assert same_numbers(before, seen(url))


@pytest.mark.parametrize("to", ["9999", "0000", "5", "base"])
def test_nobody_is_asked_about_going_back_to_a_schema_that_is_not_there(url, tw, to):
    newest = head(url)
    for more in ((), ("--yes",)):
        code, out, err = tw("db", "downgrade", "--to", to, *more, "--db", url)
        refusal = f"tilewright: to: must be a schema between 0001 and {newest}, not '{to}'\n"
        assert (code, out, err) == (1, "", refusal)
    assert head(url) == newest


def test_a_file_that_is_served_is_neither_taken_back_nor_replaced(tw, tmp_path):
    """Its server would meet tables that it does not know."""
    url, copy = f"sqlite:///{tmp_path}/t.db", tmp_path / "copy"
    with open_store(url) as store, store.serving("process 7 at http://h"):
        tw("db", "backup", copy, "--db", url)
        for command in (("downgrade", "--to", "0005"), ("restore", copy, "--replace")):
            code, _, err = tw("db", *command, "--yes", "--db", url)
            assert (code, "is served already, by process 7 at http://h: stop that server" in err) == (1, True)
        assert store.tokens() == []
    assert tw("db", "downgrade", "--to", "0005", "--yes", "--db", url)[0] == 0


def test_a_database_that_servers_use_is_neither_taken_back_nor_replaced(tw, tmp_path, postgres_url):
    copy = tmp_path / "copy"
    with open_store(postgres_url) as store, contextlib.closing(store.leadership(15.0)) as leadership:
        assert leadership.leads()
        tw("db", "backup", copy, "--portable", "--db", postgres_url)
        for command in (("downgrade", "--to", "0005"), ("restore", copy, "--replace")):
            code, _, err = tw("db", *command, "--yes", "--db", postgres_url)
            assert (code, "is served: connections of servers are open (tilewright leader)" in err) == (
                1,
                True,
            )
        assert store.tokens() == []
    assert tw("db", "downgrade", "--to", "0005", "--yes", "--db", postgres_url)[0] == 0


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz"])
def test_a_backup_of_either_kind_is_restored_into_either(url, empty, tw, tmp_path, suffix):
    file = tmp_path / f"copy.{suffix}"
    code, out, err = tw("db", "backup", file, "--portable", "--db", url, "--json")
    copied = json.loads(out)
    assert (code, err, copied["file"], copied["schema"]) == (0, "", str(file), head(url))
    assert tw("db", "restore", file, "--db", empty) == (
        0,
        f"{shown(empty)}: {copied['rows']} rows of {copied['tables']} tables from {file}\n",
        "",
    )
    assert seen(empty) == seen(url)


def test_a_database_with_rows_is_replaced_only_where_that_is_said_twice(url, tw, tmp_path):
    file = tmp_path / "copy"
    tw("db", "backup", file, "--portable", "--db", url)
    before = seen(url)
    with open_store(url) as store:
        store.put_target("later", "{}")
    code, out, err = tw("db", "restore", file, "--db", url)
    told = f"tilewright: {name_of(url)} holds rows already (in "
    remedy = "): name an empty database, or remove them first by --replace\n"
    assert (code, out, err.startswith(told), err.endswith(remedy)) == (1, "", True, True)
    code, out, err = tw("db", "restore", file, "--replace", "--db", url)
    assert (code, out, "loses all that it holds. Go on? Say --yes" in err) == (64, "", True)
    with open_store(url) as store:
        assert store.target("later").key == "later"
    assert tw("db", "restore", file, "--replace", "--yes", "--db", url)[0] == 0
    assert seen(url) == before


def test_an_answer_of_no_changes_nothing(url, tw, tmp_path, monkeypatch):
    from tilewright.service.cli import asking

    file = tmp_path / "copy"
    tw("db", "backup", file, "--portable", "--db", url)
    monkeypatch.setattr(asking.sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(asking.typer, "confirm", lambda question, err: False)
    with open_store(url) as store:
        store.put_target("later", "{}")
    code, out, err = tw("db", "restore", file, "--replace", "--db", url)
    assert (code, (out + err).strip()) == (1, "tilewright: nothing was changed")
    with open_store(url) as store:
        assert store.target("later").key == "later"


def test_a_backup_never_takes_the_place_of_a_file(url, tw, tmp_path):
    (tmp_path / "copy").write_text("mine")
    code, out, err = tw("db", "backup", tmp_path / "copy", "--db", url)
    assert (code, out, err) == (
        1,
        "",
        f"tilewright: {tmp_path}/copy is there already: name a new file\n",
    )
    assert (tmp_path / "copy").read_text() == "mine"


def test_check_names_each_problem_by_its_rule_and_ends_with_1(url, tw):
    with open_store(url) as store, store._database.write() as conn:
        conn.exec_driver_sql("UPDATE schedules SET seconds = 9.0")
    code, out, _ = tw("db", "check", "--db", url)
    rules = [line.split(":")[0] for line in out.splitlines()]
    assert (code, "a best-known schedule has its trial's seconds" in rules) == (1, True)
    code, out, _ = tw("db", "check", "--db", url, "--json")
    assert (code, [problem["rule"] for problem in json.loads(out)["problems"]]) == (1, rules)


def test_a_database_without_rows_is_in_order(empty, tw):
    tw("db", "upgrade", "--db", empty)
    assert tw("db", "check", "--db", empty) == (0, f"{shown(empty)} is in order\n", "")


def test_what_would_be_forgotten_is_told_and_forgotten_only_with_a_yes(url, tw):
    with open_store(url) as store:
        for number in range(KEPT_JOBS + 1):
            tuned(store, f"x{number}-")
    before = seen(url)
    code, out, err = tw("db", "prune", "--older-than", "0s", "--dry-run", "--db", url, "--json")
    told = json.loads(out)
    assert (code, err, seen(url)) == (0, "", before)
    # The oldest job keeps the best-known trial, the second keeps nothing.
    assert (told["dry_run"], told["jobs"], told["trials"]) == (True, 1, 2 + 3)
    code, out, err = tw("db", "prune", "--older-than", "0s", "--db", url)
    assert (code, out, "Go on? Say --yes" in err, seen(url)) == (64, "", True, before)
    code, out, err = tw("db", "prune", "--older-than", "0s", "--yes", "--db", url, "--json")
    # A lease is forgotten once nothing refers to it, which a dry run does not bring about.
    assert (code, json.loads(out), err) == (0, told | {"dry_run": False, "leases": 1}, "")
    assert seen(url)[0] == before[0]


def test_an_age_that_is_none_is_refused(url, tw):
    code, out, err = tw("db", "prune", "--older-than", "soon", "--yes", "--db", url)
    assert (code, out, "--older-than" in err) == (64, "", True)


@pytest.mark.parametrize(
    "arguments",
    [
        ("audit", "list"),
        ("token", "list"),
        ("token", "revoke", "tok_1"),
        ("best", "list"),
        ("best", "pins"),
        ("best", "freeze", "release"),
        ("best", "check"),
        ("db", "check"),
        ("db", "backup", "copy"),
        ("db", "prune", "--older-than", "1d", "--yes"),
        ("db", "downgrade", "--to", "0001", "--yes"),
    ],
    ids=" ".join,
)
def test_what_reads_or_changes_a_database_makes_none_where_its_name_is_mistyped(
    tw, tmp_path, monkeypatch, arguments
):
    monkeypatch.chdir(tmp_path)
    code, out, err = tw(*arguments, "--db", f"sqlite:///{tmp_path}/typo.db")
    assert (code, out, err.endswith(f"{tmp_path}/typo.db: there is no such database\n")) == (1, "", True)
    assert list(tmp_path.iterdir()) == []


def test_a_database_that_is_not_there_is_told(tw, tmp_path):
    code, out, err = tw("db", "check", "--db", f"sqlite:///{tmp_path}/none/at.db")
    assert (code != 0, out, str(tmp_path) in err) == (True, "", True)
