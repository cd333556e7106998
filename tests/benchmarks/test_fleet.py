"""benchmarks/fleet.py, in its shortest form, and what it says of a run."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from simulated.latencies import Summary, table
from simulated.ledger import Ledger

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "fleet.py"


def run(*words: str) -> str:
    done = subprocess.run([sys.executable, str(SCRIPT), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_small_fleet_loses_nothing_and_shares_fairly() -> None:
    short = ("--seconds", "8", "--trial-seconds", "0.2", "--items", "2")
    said = run("filled", "--workers", "20", "--jobs", "4", *short)
    assert "missing 0, settled twice 0, lost 0; refused calls 0" in said
    ((least, most),) = re.findall(r"settled of each job +(\d+) to (\d+)", said)
    # The workers have up to 40 trials in hand, 10 of each job: of few settled ones that is a large part.
    assert int(most) - int(least) <= max(20, int(most) / 3)
    (settled,) = re.findall(r"settlements a second +\S+ +(\d+) in all", said)
    assert int(settled) > 20


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_real_searches_feed_simulated_workers() -> None:
    said = run("load", "--workers", "8", "--jobs", "2", "--seconds", "10", "--trial-seconds", "0.2")
    assert "missing 0, settled twice 0, lost 0; refused calls 0" in said


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_lookups_are_answered_and_unchanged_ones_are_said_to_be() -> None:
    said = run("lookups", "--seconds", "1", "--connections", "2")
    assert re.findall(r"^(200|304|client alone) +\d+", said, re.MULTILINE) == ["200", "304", "client alone"]


def test_latencies_are_told_in_milliseconds() -> None:
    rows = {"lease": Summary.of([0.001] * 98 + [0.5, 0.25], over=10.0), "none": Summary.of([], 10.0)}
    assert table(rows) == (
        "call              calls  a second   p50 ms   p99 ms  worst ms\n"
        "lease               100      10.0     1.00   500.00     500.0\n"
        "none                  0       0.0     0.00     0.00       0.0"
    )


@pytest.mark.parametrize(
    ("ledger", "clean"),
    [
        (Ledger(10, 0, 0, 0, {"a": 5, "b": 5}), True),
        (Ledger(10, 1, 0, 0, {"a": 5}), False),
        (Ledger(10, 0, 1, 0, {"a": 5}), False),
        (Ledger(10, 0, 0, 1, {"a": 5}), False),
    ],
)
def test_a_run_is_clean_where_nothing_is_missing_doubled_or_lost(ledger: Ledger, clean: bool) -> None:
    assert ledger.clean == clean


def test_fairness_is_the_largest_share_over_the_smallest() -> None:
    assert Ledger(12, 0, 0, 0, {"a": 8, "b": 4}).fairness == 2.0
