"""`tilewright tune` and trials by the command line."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest
from cli_commands import Command
from service_harness import MATMUL, Api, attach, searched


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
