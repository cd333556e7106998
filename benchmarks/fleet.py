"""A fleet of simulated workers against the scaled form on this machine, and how fast lookups are.

    fleet.py load        1 000 workers, ten jobs, real searches, trials of 10 s
    fleet.py filled      the same with queues that are full from the start, so that every worker has work
    fleet.py saturation  as `filled`, with trials that take no time: where the server is the limit
    fleet.py lookups     best-known schedules of one server process, in a closed loop

PostgreSQL, two API processes, search runners and the clients share this machine. Ends with 1 where a lease
was lost, a settlement is missing, or a trial was settled twice.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "deploy"))

from simulated.answers import run_lookups  # noqa: E402
from simulated.latencies import table  # noqa: E402
from simulated.load import Load, Outcome, run_load  # noqa: E402

LOADS = {
    "load": Load(),
    "filled": Load(searches=0),
    "saturation": Load(
        searches=0, trial_seconds=0.0, workers=64, max_items=16, together=8, spread=1.0, seconds=60.0
    ),
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=[*LOADS, "lookups"])
    parser.add_argument("--workers", type=int, help="simulated workers, an even number")
    parser.add_argument("--jobs", type=int, help="jobs at a time")
    parser.add_argument("--seconds", type=float, help="how long to measure")
    parser.add_argument("--trial-seconds", type=float, help="how long a simulated trial takes")
    parser.add_argument("--items", dest="max_items", type=int, help="most candidates of a lease")
    parser.add_argument("--together", type=int, help="results handed in at a time")
    parser.add_argument("--batch", type=int, help="candidates that a search proposes at a time")
    parser.add_argument("--connections", type=int, default=4, help="of the lookups")
    said = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tw-fleet-") as folder:
        # Another user than root, as whom PostgreSQL runs, has to get there.
        Path(folder).chmod(0o711)
        data = Path(folder) / "data"
        if said.what == "lookups":
            rows, spent = run_lookups(data, said.seconds or 10.0, said.connections)
            print(
                f"{said.connections} connections in a closed loop, one server process, which spends "
                f"{spent['200'] * 1e3:.3f} ms of a processor on an answer, {spent['304'] * 1e3:.3f} where it "
                "has not changed"
            )
            print(table(rows))
            return 0
        load = LOADS[said.what]
        given = {
            name: value
            for name in ("workers", "jobs", "seconds", "trial_seconds", "max_items", "together", "batch")
            if (value := getattr(said, name)) is not None
        }
        load = replace(load, **given)
        outcome = run_load(load, data)
    print(describe(load, outcome))
    return 0 if outcome.ledger.clean and not outcome.refused else 1


def describe(load: Load, outcome: Outcome) -> str:
    ledger = outcome.ledger
    searching = (
        f"{load.searches} search runners, batches of {load.batch}"
        if load.searches
        else "queues filled beforehand"
    )
    lines = [
        f"{load.workers} workers, {load.jobs} jobs, trials of {load.trial_seconds:g} s, leases of up to "
        f"{load.max_items}, {load.together} results a call; {load.apis} API processes, {searching}; "
        f"{outcome.seconds:.0f} s",
        f"leases a second       {outcome.leases / outcome.seconds:10.1f}   with {outcome.items} candidates",
        f"settlements a second  {ledger.settled / outcome.seconds:10.1f}   {ledger.settled} in all; "
        f"{outcome.steady:.1f} in the second half, when all have attached",
        f"missing {ledger.missing}, settled twice {ledger.twice}, lost {ledger.lost}; "
        f"refused calls {len(outcome.refused)}; calls made again {outcome.errors or 'none'}",
        f"settled of each job   {min(ledger.shares.values())} to {max(ledger.shares.values())}: "
        f"largest over smallest {ledger.fairness:.2f}",
        table(outcome.calls),
        *(f"refused: {words}" for words in outcome.refused[:5]),
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
