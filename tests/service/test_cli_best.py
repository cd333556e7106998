"""`tilewright best`: explain, pin, freeze, retire, and records from one store to another."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest
from cli_commands import Command
from service_harness import Api
from test_exchange import plus, record

import tilewright as tw
from tilewright.compiler import ir
from tilewright.db import Store, open_store
from tilewright.service.cli import run
from tilewright.service.cli.best_source import Source

WORKLOAD = json.dumps(ir.to_json(plus(12)))


@pytest.fixture
def verb(tw: Command) -> Command:
    """Runs a verb of `best`."""
    return lambda *words: tw("best", *words)


def test_the_command_line_explains_pins_freezes_and_retires(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    row = record(store, plus(12), 1e-3)

    def said(*words: str, code: int = 0) -> str:
        assert run(["best", *words, "--db", url]) == code, capsys.readouterr().err
        return capsys.readouterr().out

    assert row in said("list") and "1000.0 µs" in said("explain", WORKLOAD)
    assert said(WORKLOAD) == said("show", WORKLOAD)
    assert said("list").splitlines()[1].split()[-1] == "no"  # confirmed, and nothing is pinned
    said("pin", WORKLOAD, row, "--note", "drift")
    assert f"trial {row} is pinned" in said("show", WORKLOAD)
    assert said("list").splitlines()[1].split()[-2:] == ["no", row]
    said("pin", WORKLOAD, "--default")
    assert said("list").splitlines()[1].split()[-2:] == ["no", "default"]
    assert said("show", WORKLOAD).startswith("# the default schedule: ")
    assert "default" in said("pins")
    said("unpin", WORKLOAD)
    said("unpin", WORKLOAD, code=1)
    said("freeze", "release-1")
    assert "release-1" in said("freezes") and said("changes", "release-1") == "unchanged\n"
    said("retire", row, "--reason", "wrong", "--yes")
    assert row in said("changes", "release-1", code=1)
    said("unfreeze", "release-1", "--yes")
    said("show", WORKLOAD, code=1)


def test_a_workload_may_be_said_by_the_key_that_lists_show(
    store: Store, url: str, api: Api, verb: Command
) -> None:
    row, whole = record(store, plus(12), 1e-3), ir.workload_key(plus(12))
    shown = verb("list", "--db", url)[1].splitlines()[1].split()[0]
    for key in (shown, whole[:8], whole):
        assert verb("explain", key, "--db", url) == verb("explain", WORKLOAD, "--db", url)
        assert verb("show", key, "--db", url) == verb("show", WORKLOAD, "--db", url)
        pinned = f"trial {row} is pinned for workload {key[:12]}\n"
        assert verb("pin", key, row, "--db", url) == (0, pinned, "")
        assert verb("unpin", key, "--db", url) == (0, "", "")
    assert verb("explain", shown, "--url", api.url) == verb("explain", WORKLOAD, "--url", api.url)
    assert "1000.0 µs" in verb("show", shown, "--url", api.url)[1]


def test_the_start_of_a_key_that_is_of_no_workload_or_of_several_is_refused(
    url: str, store: Store, verb: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(store, plus(12), 1e-3)
    assert verb("explain", "0" * 8, "--db", url) == (
        1,
        "",
        f"tilewright: no schedule at {url} is of a workload 00000000…\n",
    )
    keys = ["abcdef01" + digit * 56 for digit in "45"]
    known = [SimpleNamespace(workload=key) for key in keys]
    monkeypatch.setattr(Source, "schedules", lambda self: known)
    assert verb("explain", "abcdef01", "--db", url) == (
        64,
        "",
        f"tilewright: abcdef01 begins the keys of 2 workloads, such as {keys[0]} and {keys[1]}: "
        "give more digits\n",
    )


def test_what_is_set_says_where_best_known_schedules_are_looked_up(
    store: Store, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row = record(store, plus(12), 1e-3)
    monkeypatch.setenv("TILEWRIGHT_DB", url)
    assert run(["best", "list"]) == 0
    assert row in capsys.readouterr().out
    monkeypatch.setenv("TILEWRIGHT_URL", "http://127.0.0.1:1")
    assert run(["best", "list"]) == 2
    assert "nothing answers at http://127.0.0.1:1" in capsys.readouterr().err


@pytest.mark.parametrize("verb", [("retire", "ROW", "--reason", "wrong"), ("unfreeze", "release-1")])
def test_what_cannot_be_taken_back_needs_a_yes_where_there_is_no_terminal(
    store: Store,
    url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    verb: tuple[str, ...],
) -> None:
    row = record(store, plus(12), 1e-3)
    store.freeze("release-1")
    monkeypatch.setattr("sys.stdin", io.StringIO())
    command = ["best", *(row if word == "ROW" else word for word in verb), "--db", url]
    assert run(command) == 64
    said = capsys.readouterr()
    assert (said.out, "Say --yes: there is no terminal to ask" in said.err) == ("", True)
    assert [one.schedule.trial for one in store.kept().items] == [row] and len(store.freezes()) == 1
    assert run([*command, "--yes"]) == 0


def test_an_export_that_fails_leaves_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty one would be imported without a word, and be in the way of the next attempt."""
    out = tmp_path / "bests.jsonl"
    assert run(["best", "export", "--url", "http://127.0.0.1:1", "--out", str(out)]) == 2
    assert "nothing answers at http://127.0.0.1:1" in capsys.readouterr().err
    assert not out.exists()


def test_the_command_line_carries_records_to_another_store_and_checks_them(
    store: Store, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(store, plus(12), 1e-3)
    lines, other = tmp_path / "bests.jsonl", f"sqlite:///{tmp_path}/other.db"
    assert run(["best", "export", "--db", url, "--out", str(lines)]) == 0
    assert run(["best", "import", str(lines), "--db", other]) == 0
    assert capsys.readouterr().out == "1 best, 0 challenger, 0 slower, 0 known, 0 refused\n"
    with lines.open("a") as more:
        more.write("{}\n")
    assert run(["best", "import", str(lines), "--db", other]) == 1
    assert f"{lines}:2: version None of tilewright_schedule is not known" in capsys.readouterr().err
    assert run(["best", "check", "--db", other]) == 0
    with open_store(other) as there, there._database.write() as conn:  # type: ignore[attr-defined]
        conn.exec_driver_sql("UPDATE trials SET trace = '{'")
    assert run(["best", "check", "--db", other, "--retire"]) == 1
    assert run(["best", "check", "--db", other]) == 0


def test_a_line_that_is_no_text_is_named_and_the_others_are_taken(
    store: Store, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(store, plus(12), 1e-3)
    lines, other = tmp_path / "bests.jsonl", f"sqlite:///{tmp_path}/other.db"
    assert run(["best", "export", "--db", url, "--out", str(lines)]) == 0
    lines.write_bytes(b"\xff\xfe\n" + lines.read_bytes())
    assert run(["best", "import", str(lines), "--db", other]) == 1
    said = capsys.readouterr()
    assert said.out == "1 best, 0 challenger, 0 slower, 0 known, 1 refused\n"
    assert said.err.startswith(f"{lines}:1: is not JSON: ")


RESULTS_T4: dict[str, Any] = {
    "type": "object",
    "properties": {
        "schema_version": {"type": "string", "pattern": r"^[0-9]+\.[0-9]+\.[0-9]+$"},
        "results": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["configuration", "times", "invalidity", "correctness"],
                "properties": {
                    "timestamp": {"type": "string"},
                    "configuration": {"type": "object"},
                    "objectives": {"type": "array"},
                    "times": {
                        "type": "object",
                        "properties": {
                            "compilation_time": {"type": "number"},
                            "runtimes": {"type": "array"},
                        },
                    },
                    "invalidity": {
                        "enum": ["timeout", "compile", "runtime", "correctness", "constraints", "correct"]
                    },
                    "correctness": {"type": "number"},
                    "measurements": {
                        "type": "array",
                        "items": {
                            "properties": {
                                "name": {"type": "string"},
                                "value": {"type": ["number", "string", "array"]},
                                "unit": {"type": "string"},
                            }
                        },
                    },
                },
            },
        },
    },
}
"""What results of T4 1.0.0 must be, as far as these have such fields."""


def test_the_trials_of_a_job_are_told_in_t4(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    func = plus(12)
    found = tw.tune(func, trials=4, store=store, progress=False)
    assert run(["best", "export", "--format", "t4", "--job", str(found.job), "--db", url]) == 0
    told = json.loads(capsys.readouterr().out)
    jsonschema.validate(told, RESULTS_T4)
    trials = store.trials(str(found.job))
    assert len(told["results"]) == len([t for t in trials if t.outcome != "cancelled"])
    for trial, result in zip(trials, told["results"], strict=True):
        assert result["configuration"]["sketch"] and result["invalidity"] == "correct"
        assert result["measurements"][0] == {"name": "time", "value": trial.seconds * 1e3, "unit": "ms"}
