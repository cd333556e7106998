"""`tilewright jobs`: they are listed, shown, watched, changed and told of, with the exit codes of each."""

from __future__ import annotations

import json
import threading

from cli_commands import Command
from service_harness import HARDWARE, Api, attach, searched, settle, stored_job

from tilewright.service.cli.progress import describe
from tilewright.service.views import ProgressView


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
