from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from service_harness import HARDWARE, MATMUL, Api, attach, searched, settle, stored_job

from tilewright.db import Store
from tilewright.service.cli import run
from tilewright.service.cli.progress import describe
from tilewright.service.views import ProgressView

Capture = pytest.CaptureFixture[str]
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def tw(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs a command in this process: its exit code, stdout and stderr."""
    monkeypatch.setenv("COLUMNS", "120")

    def command(*arguments: str) -> tuple[int, str, str]:
        code = run(arguments)
        out, err = capsys.readouterr()
        return code, out, err

    return command


def _process(arguments: Sequence[str], **environment: str) -> subprocess.CompletedProcess[str]:
    """A command as a user runs it."""
    return subprocess.run(
        [sys.executable, "-c", "from tilewright.service.cli import main; main()", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(p for p in sys.path if p), **environment},
    )


def test_jobs_are_listed_in_columns(api: Api, tw: Command) -> None:
    worker = attach(api.store)
    job = searched(api.store, 4)
    settle(api.store, [1e-5, "build_error"], worker)
    api.store.cancel_job(job.id)
    assert tw("jobs", "list", "--url", api.url) == (
        0,
        "job               workload  state                  progress\n"
        f"{job.id}  matmul    cancelled (cancelled)  2/8 trials · best 10.0 µs, 52.4 GFLOP/s · "
        "failed: build_error 1\n",
        "",
    )


def test_jobs_are_listed_as_json(api: Api, tw: Command) -> None:
    ids = [stored_job(api.store).id for _ in range(3)]
    code, out, err = tw("jobs", "list", "--url", api.url, "--json", "--limit", "2")
    assert (code, [job["id"] for job in json.loads(out)], err) == (0, [ids[2], ids[1]], "")


def test_a_job_is_shown(api: Api, tw: Command) -> None:
    worker = attach(api.store)
    job = searched(api.store, 4)
    settle(api.store, [2e-5, 1e-5], worker)
    api.store.cancel_job(job.id)
    assert tw("jobs", "show", job.id, "--url", api.url) == (
        0,
        f"{job.id} matmul: cancelled (cancelled)\n"
        f"  workload  {job.workload}\n"
        f"  target    {job.target}\n"
        f"  hardware  {HARDWARE}\n"
        "  budget    8 trials, seed 0, guided, batches of 8\n"
        "  progress  2/8 trials · best 10.0 µs, 52.4 GFLOP/s\n"
        "  best      10.0 µs, 52.4 GFLOP/s in trial 1\n",
        "",
    )


def test_a_job_is_shown_with_what_its_model_was_worth_and_where_its_time_went(api: Api, tw: Command) -> None:
    job = stored_job(api.store)
    model = {
        "trials": 24,
        "rank_correlation": -0.625,
        "pairwise_accuracy": 0.25,
        "top_recall": 0.125,
        "trusted": False,
        "distrusted_rounds": 3,
        "metrics": "scikit-learn 1.9.1",
    }
    api.store.add_event(job.id, "model", json.dumps({"batch": 8, "overall": model}))
    seconds = {"generate": 0.25, "features": 0.001, "train": 0.5, "build": 4.0, "run": 3.0}
    api.store.add_event(job.id, "report", json.dumps({"seconds": seconds, "model": model}))
    out = tw("jobs", "show", job.id, "--url", api.url)[1]
    assert out.splitlines()[-2:] == [
        "  model     rank correlation -0.62, 25% of pairs in order, 12% of the fastest quarter foreseen; "
        "24 trials predicted ahead; not trusted (worse than chance after 3 rounds)",
        "  time      build 4.00 s, run 3.00 s, train 0.50 s, generate 0.25 s",
    ]


def test_a_job_that_is_not_there_ends_with_1(api: Api, tw: Command) -> None:
    assert tw("jobs", "show", "job_000000000000", "--url", api.url) == (
        1,
        "",
        "tilewright: there is no job 'job_000000000000'\n",
    )


def test_a_job_is_cancelled(api: Api, tw: Command) -> None:
    job = stored_job(api.store)
    assert tw("jobs", "cancel", job.id, "--url", api.url) == (
        0,
        f"{job.id} matmul: cancelled (cancelled)\n",
        "",
    )


def test_a_job_is_paused_and_resumed(api: Api, tw: Command) -> None:
    job = searched(api.store, 8)
    said = [tw("jobs", verb, job.id, "--url", api.url) for verb in ("pause", "resume")]
    assert said == [
        (0, f"{job.id} matmul: paused (paused)\n", ""),
        (0, f"{job.id} matmul: running\n", ""),
    ]


def test_a_job_is_extended_in_new_totals(api: Api, tw: Command) -> None:
    job = stored_job(api.store, seconds=60.0, patience=4)
    options = ("--trials", "12", "--patience", "6", "--lift", "seconds")
    assert tw("jobs", "extend", job.id, *options, "--url", api.url) == (
        0,
        f"{job.id} matmul: queued\n  budget    12 trials, patience 6\n",
        "",
    )


def test_only_a_limit_is_lifted(api: Api, tw: Command) -> None:
    assert tw("jobs", "extend", "job_1", "--lift", "trials", "--url", api.url) == (
        64,
        "",
        "tilewright: --lift trials: is no limit; the limits are seconds, target_seconds, patience\n",
    )


def test_a_finished_job_is_already_complete(api: Api, tw: Command) -> None:
    job = stored_job(api.store)
    api.store.finish_job(job.id, None, "completed", "all 8 trials of the budget are done")
    assert tw("jobs", "resume", job.id, "--url", api.url) == (
        4,
        "",
        f"tilewright: job {job.id} is already complete (all 8 trials of the budget are done): extend its "
        "budget to search on\n",
    )


def test_a_search_on_a_server_is_not_resumed_by_tune(api: Api, tw: Command) -> None:
    assert tw("tune", "matmul:64x64x64", "--resume", "--url", api.url) == (
        64,
        "",
        "tilewright: --resume is for tuning here; see `tilewright jobs resume` for a server\n",
    )


def test_watching_writes_a_line_for_each_change_and_the_job_in_the_end(api: Api, tw: Command) -> None:
    job = stored_job(api.store)
    threading.Timer(2.5, api.store.cancel_job, [job.id]).start()
    code, out, err = tw("jobs", "watch", job.id, "--url", api.url)
    assert (code, out.splitlines()[0]) == (0, f"{job.id} matmul: cancelled (cancelled)")
    assert err == (
        f"{job.id} matmul: queued · 0/8 trials\n{job.id} matmul: cancelled (cancelled) · 0/8 trials\n"
    )


def test_watching_as_json_writes_each_event_on_a_line(api: Api, tw: Command) -> None:
    job = stored_job(api.store)
    api.store.add_event(job.id, "best", '{"seconds": 1e-05}')
    api.store.cancel_job(job.id)
    code, out, _ = tw("jobs", "watch", job.id, "--url", api.url, "--json")
    assert (code, [json.loads(line) for line in out.splitlines()]) == (
        0,
        [
            {"seq": 1, "kind": "state", "data": {"state": "queued", "reason": ""}},
            {"seq": 2, "kind": "best", "data": {"seconds": 1e-5}},
            {"seq": 3, "kind": "state", "data": {"state": "cancelled", "reason": "cancelled"}},
        ],
    )


def test_watching_a_job_that_fails_ends_with_1_and_its_reason(api: Api, tw: Command) -> None:
    job = stored_job(api.store)
    api.store.finish_job(job.id, None, "failed", "no legal candidate")
    code, _, err = tw("jobs", "watch", job.id, "--url", api.url)
    assert (code, err.splitlines()[-1]) == (1, f"tilewright: {job.id} failed: no legal candidate")


def test_workers_are_listed_with_a_token_from_a_file(api: Api, tw: Command, tmp_path: Path) -> None:
    attach(api.store)
    token_file = tmp_path / "token"
    token_file.write_text(api.store.create_token("t", ["worker"])[1] + "\n")
    code, out, err = tw("workers", "list", "--url", api.url, "--token-file", str(token_file))
    assert (code, re.sub(r"\d+ s ago", "0 s ago", out), err) == (
        0,
        "name  state        pool  labels  hardware      model        seen     reason\n"
        f"w1    registering                {HARDWARE[:12]}  A processor  0 s ago  "
        "it has not asked for work yet\n",
        "",
    )


def test_a_missing_token_ends_with_3(api: Api, tw: Command) -> None:
    code, out, err = tw("workers", "list", "--url", api.url)
    assert (code, out, err.startswith("tilewright: this request needs a token of scope worker")) == (
        3,
        "",
        True,
    )


def test_a_token_to_another_machine_over_http_ends_with_3(tw: Command, tmp_path: Path) -> None:
    token_file = tmp_path / "token"
    token_file.write_text("secret")
    code, _, err = tw("jobs", "list", "--url", "http://tune.example", "--token-file", str(token_file))
    assert (code, "secret" in err, "--insecure-http" in err) == (3, False, True)


def test_a_server_that_is_not_there_ends_with_2_naming_it(tw: Command) -> None:
    assert tw("jobs", "list", "--url", "http://127.0.0.1:1") == (
        2,
        "",
        "tilewright: nothing answers at http://127.0.0.1:1: [Errno 111] Connection refused\n",
    )


def test_a_url_that_is_none_ends_with_6(tw: Command) -> None:
    assert tw("jobs", "list", "--url", "tune.example") == (
        6,
        "",
        "tilewright: 'tune.example' is no server's URL; expected one such as http://127.0.0.1:8470\n",
    )


def test_an_unknown_command_ends_with_64(tw: Command) -> None:
    assert tw("tuen") == (
        64,
        "",
        "tilewright: No such command 'tuen'. Did you mean 'tune', 'token'?; see --help\n",
    )


def test_a_wrong_job_id_ends_with_64(tw: Command) -> None:
    assert tw("jobs", "show", "../x") == (
        64,
        "",
        "tilewright: '../x' is no job's id; they look like job_0123456789ab\n",
    )


def test_the_help_documents_the_exit_codes(tw: Command) -> None:
    code, out, _ = tw("--help")
    assert (code, "Exit codes: 0 done" in out) == (0, True)


def test_a_created_tokens_value_alone_is_on_stdout_and_works(
    store: Store, tw: Command, tmp_path: Path
) -> None:
    db = f"sqlite:///{tmp_path}/tilewright.db"
    code, out, err = tw(
        "token",
        "create",
        "--db",
        db,
        "--scope",
        "worker",
        "--scope",
        "admin",
        "--name",
        "lab",
        "--expires",
        "24h",
    )
    token = store.token_by_secret(out.strip())
    assert token is not None
    assert (code, token.name, token.scopes, err) == (
        0,
        "lab",
        ("worker", "admin"),
        f"token {token.id} of 'lab', worker, admin, expires in 24h; this is the only time it is shown\n",
    )


def test_a_created_token_as_json_has_its_value_and_its_facts(
    store: Store, tw: Command, tmp_path: Path
) -> None:
    db = f"sqlite:///{tmp_path}/tilewright.db"
    _, out, err = tw("token", "create", "--db", db, "--scope", "worker", "--json")
    document = json.loads(out)
    token = store.token_by_secret(document["value"])
    assert token is not None
    assert (document["token"], err) == (
        {
            "id": token.id,
            "name": "cli",
            "scopes": ["worker"],
            "pool": None,
            "created_at": token.created_at,
            "expires_at": None,
            "revoked_at": None,
            "max_jobs": None,
            "max_trials": None,
            "rate": None,
        },
        "",
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--scope", "wrker"),
            "unknown scope 'wrker'; scopes are jobs:write, schedules:read, schedules:write, worker, builder, "
            "admin",
        ),
        (
            ("--scope", "worker", "--expires", "soon"),
            "--expires must be a life time such as 24h or 7d, at most 3650d, got 'soon'",
        ),
        (
            ("--scope", "worker", "--expires", "9" * 400 + "d"),
            f"--expires must be a life time such as 24h or 7d, at most 3650d, got '{'9' * 37}...'",
        ),
        (
            ("--scope", "worker", "--expires", "3651d"),
            "--expires must be a life time such as 24h or 7d, at most 3650d, got '3651d'",
        ),
        (
            ("--scope", "worker", "--expires", "0h"),
            "--expires must be a life time such as 24h or 7d, at most 3650d, got '0h'",
        ),
    ],
)
def test_a_token_that_cannot_be_made_ends_with_64(
    tw: Command, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    answer = tw("token", "create", "--db", f"sqlite:///{tmp_path}/tilewright.db", *arguments)
    assert answer == (64, "", f"tilewright: {message}\n")


def test_a_revoked_token_opens_nothing(store: Store, tw: Command, tmp_path: Path) -> None:
    token, value = store.create_token("t", ["admin"])
    answer = tw("token", "revoke", token.id, "--db", f"sqlite:///{tmp_path}/tilewright.db")
    assert (answer, store.token_by_secret(value)) == ((0, f"{token.id} is revoked\n", ""), None)


def test_tokens_are_listed_without_their_values(store: Store, tw: Command, tmp_path: Path) -> None:
    token, _ = store.create_token("lab", ["worker", "admin"], "b")
    assert tw("token", "list", "--db", f"sqlite:///{tmp_path}/tilewright.db") == (
        0,
        f"token               name  scopes        pool\n{token.id}  lab   worker admin  b\n",
        "",
    )


def test_upgrading_a_database_says_from_what_to_what(store: Store, tw: Command, tmp_path: Path) -> None:
    db = f"sqlite:///{tmp_path}/tilewright.db"
    assert tw("db", "upgrade", "--db", db) == (
        0,
        f"{db} is at schema {store.schema_version()} already\n",
        "",
    )


def test_the_configuration_names_each_values_source(tw: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_PORT", "9000")
    monkeypatch.setenv("TILEWRIGHT_TOKEN", "tw_secret")
    monkeypatch.setenv("TILEWRIGHT_DB", "postgresql://me:hush@host/db")
    _, out, _ = tw("config", "show", "--json")
    shown = json.loads(out)
    assert {key: shown[key] for key in ("port", "token", "db", "host")} == {
        "port": {"value": 9000, "source": "environment TILEWRIGHT_PORT"},
        "token": {"value": "********", "source": "environment TILEWRIGHT_TOKEN"},
        "db": {"value": "postgresql://me:********@host/db", "source": "environment TILEWRIGHT_DB"},
        "host": {"value": "127.0.0.1", "source": "default"},
    }


def test_a_wrong_setting_ends_with_6(tw: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_PORT", "high")
    code, out, err = tw("config", "show")
    assert (code, out, err) == (
        6,
        "",
        "tilewright: port: Input should be a valid integer, unable to parse string as an integer, got 'high' "
        "(environment TILEWRIGHT_PORT)\n",
    )


def test_progress_in_words_says_all_that_a_watcher_asks() -> None:
    progress = ProgressView(
        done=24,
        asked=64,
        failures={"build_error": 2, "run_timeout": 1},
        best_seconds=412.3e-6,
        best_gflops=112.1,
        eta_seconds=7.2,
    )
    assert describe(progress) == (
        "24/64 trials · best 412.3 µs, 112.1 GFLOP/s · failed: build_error 2, run_timeout 1 · 7 s left"
    )


def test_progress_in_words_says_what_was_known_before() -> None:
    assert describe(ProgressView(done=50, asked=150, known=100)) == "50/150 trials (100 known before)"


def test_trials_are_asked_for_and_told(api: Api, tw: Command) -> None:
    job = searched(api.store, 2, origin="outside")
    api.store.cancel_job(job.id)
    assert tw("jobs", "ask", job.id, "--url", api.url)[::2] == (
        4,
        f"tilewright: job {job.id} is cancelled and hands out no more trials\n",
    )
    job = searched(api.store, 2, origin="outside")
    code, out, _ = tw("jobs", "ask", job.id, "--holder", "ann", "--json", "--url", api.url)
    assert (code, [trial["number"] for trial in json.loads(out)]) == (0, [0])
    told = tw("jobs", "tell", job.id, "0", "--seconds", "0.5", "--url", api.url)
    assert told == (0, f"trial 0 of {job.id}: ok\n", "")
    failed = tw(
        "jobs", "tell", job.id, "1", "--failure", "run_error", "--message", "it fell", "--url", api.url
    )
    assert failed == (0, f"trial 1 of {job.id}: run_error\n", "")


def test_a_job_is_submitted_with_its_history_and_suggestions(api: Api, tw: Command, tmp_path: Path) -> None:
    attach(api.store)
    file, workload = tmp_path / "mine.json", json.dumps(MATMUL)
    file.write_text('{"version": 1, "steps": []}')
    ender = threading.Thread(target=_cancel_the_first_job, args=(api,))
    ender.start()
    _, _, said = tw("tune", workload, "--history", "ignore", "--suggest", str(file), "--url", api.url)
    ender.join()
    (job,) = api.store.jobs().items
    assert f"`tilewright jobs cancel {job.id} --url {api.url}` ends it\n" in said
    assert (job.history, json.loads(job.spec)["suggestions"]) == ("ignore", [{"version": 1, "steps": []}])


def _cancel_the_first_job(api: Api) -> None:
    while not (jobs := api.store.jobs().items):
        time.sleep(0.02)
    api.store.cancel_job(jobs[0].id)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--history", "forget"), "--history is use or ignore, not 'forget'"),
        (("--suggest", "/nowhere.json"), "--suggest /nowhere.json: "),
        (("--seconds", "inf"), "'--seconds'"),
        (("--trials", str(2**70)), "a budget's trials is below 2**53, not "),
        (("--seed", str(2**70)), "a seed is an integer of less than 2**53, not "),
        (("--target-seconds", "inf"), "'--target-seconds'"),
    ],
)
def test_wrong_beginnings_of_a_search_end_with_64(
    tw: Command, tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    code, _, err = tw("tune", json.dumps(MATMUL), "--db", f"sqlite:///{tmp_path}/t.db", *options)
    assert (code, said in err) == (64, True)


def test_a_suggestion_that_is_nested_too_deeply_ends_with_64(tw: Command, tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text("[" * 100_000)
    code, _, err = tw("tune", json.dumps(MATMUL), "--suggest", str(path))
    assert (code, f"--suggest {path}: " in err) == (64, True)


@pytest.mark.parametrize("number", ["inf", "nan", "-1"])
def test_a_time_that_is_none_is_not_told(tw: Command, number: str) -> None:
    code, _, err = tw("jobs", "tell", "job_000000000000", "0", "--seconds", number)
    assert (code, "'--seconds'" in err) == (64, True)


_BASE_ALONE = """
import sys

EXTRAS = {"fastapi", "starlette", "uvicorn", "sqlalchemy", "alembic", "xgboost", "sklearn"}

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in EXTRAS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refuse())
import tilewright.service.cli, tilewright.service.client, tilewright.service.connect
import tilewright.service.settings, tilewright.service.worker_client
from tilewright.service.cli import run
sys.exit(run(sys.argv[1:]))
"""


def _with_the_base_install(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _BASE_ALONE, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(p for p in sys.path if p)},
    )


def test_client_commands_and_settings_work_with_the_base_install_alone(api: Api) -> None:
    job = stored_job(api.store)
    shown = _with_the_base_install("jobs", "show", job.id, "--url", api.url, "--json")
    config = _with_the_base_install("config", "show", "--json")
    assert (shown.returncode, json.loads(shown.stdout)["id"], config.returncode) == (0, job.id, 0)


def test_a_database_without_its_extra_is_refused_naming_it() -> None:
    made = _with_the_base_install("token", "create", "--scope", "worker")
    assert (made.returncode, made.stderr) == (
        1,
        "tilewright: a database needs alembic, which is not installed: pip install 'tilewright[store]'\n",
    )


def test_a_server_without_its_extra_is_refused_naming_it() -> None:
    served = _with_the_base_install("serve", "--port", "0")
    assert (served.returncode, served.stderr.endswith("pip install 'tilewright[server]'\n")) == (1, True)


def test_reading_only_the_start_of_the_output_is_no_error(api: Api) -> None:
    for _ in range(3):
        stored_job(api.store)
    program = f"{sys.executable} -c 'from tilewright.service.cli import main; main()' jobs list --json"
    piped = subprocess.run(
        ["/bin/sh", "-c", f"{program} --url {api.url} | true"],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(p for p in sys.path if p)},
    )
    assert piped.stderr == ""


def test_the_program_exits_with_the_code_of_its_command() -> None:
    refused = _process(["jobs", "list", "--url", "http://127.0.0.1:1"])
    assert (refused.returncode, refused.stdout) == (2, "")
