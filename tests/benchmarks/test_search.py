"""How searches on a machine are judged and told."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from searching import live, live_report, warm

from tilewright.db import open_store
from tilewright.db.records import NewJob, NewTrial, Settlement

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
CURVE = [[1.0, None], [1.5, 4e-3], [2.0, 2.2e-3], [2.5, 2e-3]]


@pytest.mark.parametrize(
    ("goal", "found"), [(5e-3, (2, 1.5)), (2.2e-3, (3, 2.0)), (2e-3, (4, 2.5)), (1e-3, (None, None))]
)
def test_a_goal_is_reached_by_the_first_trial_that_is_at_most_so_slow(
    goal: float, found: tuple[int | None, float | None]
) -> None:
    assert live.reached(CURVE, goal) == found


def searched(**more: Any) -> dict[str, Any]:
    run = {"seconds": 2e-3, "gflops": 50.0, "wall": 8.0, "processor_seconds": 4.0, "search_seconds": 0.4}
    run["split"] = {"load": 0.8}
    return run | {"curve": CURVE} | more


def test_a_search_is_near_once_it_is_within_5_percent_of_the_long_search() -> None:
    # The long search's winner takes 2.2e-3 / 1.05 in the units of this search.
    found = live.judged(searched(), {"trials": 1000}, ratio=1.05 * 2e-3 / 2.2e-3)
    assert (found["near_trials"], found["near_seconds"]) == (3, 2.0)
    assert (found["overhead"], found["overhead_with_loading"]) == (0.05, pytest.approx(0.15))


def result(ratio: float = 1.02, **more: Any) -> dict[str, Any]:
    one = [live.judged(searched(), {"trials": 1000}, ratio)] * 2
    never = live.judged(searched(), {"trials": 1000}, ratio=1.2)
    return {"goals": (12.0, 8.0), "one": [*one, never], **more}


def test_the_tables_have_medians_goals_and_what_was_never_reached() -> None:
    tvm = {"wall": 160.0, "searches": [{"ratio": 0.9, "seconds": 2.0}, {"ratio": 1.1, "seconds": None}] * 2}
    far = live.judged(searched(), {"trials": 9}, 1.2)
    whole = result(two=result()["one"], warm=[far], without={"racing": result()["one"]})
    told = live_report.tables(
        {
            "trials": 64,
            "seeds": 3,
            "best_of": 1000,
            "warm_trials": 16,
            "workloads": {"W1": whole, "W8": result() | {"goals": None, "tvm": tvm}},
        }
    )
    assert (
        told
        == """\
64 trials, medians over 3 seeds. `best`: the winner's time over that of the best of 1000 trials, both \
timed in turn in fresh processes.

|  | wall | wall / processor | two processors | search | loading too | best | trials to 5 % | wall to 5 % \
| GFLOP/s |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
| W1 | 8.0 s (of 12) | 2.00 | 8.0 s (of 8) | 5.0% | 15.0% | 1.020 | 4 | 2.5 s | 50 |
| W8 | 8.0 s | 2.00 | - | 5.0% | 15.0% | 1.020 | 4 | 2.5 s | 50 |

|  | TVM's search | ours has its best after | share | TVM's best / ours |
| --- | --- | --- | --- | --- |
| W8 | 160.0 s | - | - | 1.00 |

|  | best after 16, warm-started | trials to 5 % | wall |
| --- | --- | --- | --- |
| W1 | 1.200 | - | 8.0 s |

| best, wall | whole | without racing |
| --- | --- | --- |
| W1 | 1.020, 8.0 s | 1.020, 8.0 s |"""
    )


def test_a_line_says_the_most_of_it() -> None:
    tvm = {"wall": 160.0, "searches": [{"ratio": 0.9, "seconds": 2.0}]}
    assert live_report.line("W1", result(tvm=tvm)) == (
        "W1: 8.0 s, 1.020 x the long search's best, search 5% (15% with loading), "
        "TVM 160 s, reached after 2.0 s"
    )


def test_a_store_forgets_one_workload_and_keeps_the_others(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with open_store(f"sqlite:///{path}") as store:
        store.put_target("t", "{}")
        store.put_hardware("h", "{}")
        for workload in ("w1", "w2"):
            store.put_workload(workload, workload, "{}", "")
            job = store.create_job(NewJob(workload, "t", "h", 1, None, 0, "random", 0.0, "local", "{}"))
            epoch = store.begin_search(job.id)
            store.add_trials(job.id, epoch, [NewTrial(0, 0, workload, "s", "{}", b"", 1, 0)])
            settlement = Settlement(seconds=1.0, samples=(1.0,), error=0.1, codegen_version="1")
            store.settle_local(job.id, epoch, 0, settlement)
            store.finish_job(job.id, epoch, "completed", "")
    warm.without(path, "w1")
    with open_store(f"sqlite:///{path}") as store:
        assert store.best("w1", "t", "h") is None
        assert store.best("w2", "t", "h") is not None
        assert [job.workload for job in store.jobs().items] == ["w2"]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_searches_are_made_judged_and_written(tmp_path: Path) -> None:
    files = {n: tmp_path / f"out.{n}" for n in ("json", "markdown", "references")}
    words = ["--live", "--workloads", "W7", "--seeds", "1", "--trials", "6", "--best-of", "8", "--two"]
    words += ["--processes", "1", "--rounds", "3", "--ablation", "--work", str(tmp_path / "work")]
    words += [w for n, f in files.items() for w in (f"--{n}", str(f))]
    subprocess.run([sys.executable, str(BENCHMARKS / "search.py"), *words], check=True, capture_output=True)
    found = json.loads(files["json"].read_text())["live"]["workloads"]["W7"]
    assert [search["trials"] for search in found["one"]] == [6]
    assert set(found["without"]) == {"racing", "model", "local"}
    assert found["one"][0]["wall"] > found["one"][0]["tune_seconds"] > 0
    assert list(json.loads(files["references"].read_text())) == ["W7-8"]
    assert files["markdown"].read_text().count("| W7 |") == 2
