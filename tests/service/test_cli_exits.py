"""What commands end with where a server, a token, a setting or a word is wrong; tokens and settings."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from cli_commands import Command
from service_harness import HARDWARE, Api, attach

from tilewright.db import Store


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


@pytest.mark.parametrize(
    "words",
    [
        ("token", "create", "--scope", "worker"),
        ("token", "list"),
        ("db", "check"),
        ("best", "list"),
        ("best", "check"),
        ("audit", "list"),
    ],
)
def test_what_needs_no_token_does_not_mind_that_its_file_is_not_there(
    store: Store, url: str, tw: Command, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("TILEWRIGHT_TOKEN_FILE", "/nonexistent/token")
    assert tw(*words, "--db", url)[0] == 0


def test_what_asks_a_server_names_the_token_file_that_is_not_there(
    api: Api, tw: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_TOKEN_FILE", "/nonexistent/token")
    said = "tilewright: TILEWRIGHT_TOKEN_FILE names /nonexistent/token, which cannot be read: No such file or"
    for words in (("jobs", "list"), ("best", "list")):
        assert tw(*words, "--url", api.url) == (6, "", f"{said} directory\n")
