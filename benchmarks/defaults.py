"""The default schedule of every workload: how long choosing it takes, and its speed beside the tuned one.

`--trials`, `--store`, `--set` and `--workloads` are those of kernels.py; with `--trials 0` and no store
only the choosing is timed. A row is marked where choosing takes more than 50 ms or the default has less than
60 % of the tuned speed; the exit status is then 1.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench.machine import restart_with_threads

#: Seconds that choosing may take, and the least share of the tuned speed.
CHOOSING, SHARE = 0.05, 0.6


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--set", default="w", help="comma-separated sets (default: w)")
    parser.add_argument("--workloads", default="", help="comma-separated names of any set")
    parser.add_argument("--target", default="llvm")
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--store", help="SQLite file that keeps the tuned schedules")
    parser.add_argument("--markdown", type=Path, help="write the table to this file")
    options = parser.parse_args()
    restart_with_threads(1)
    from bench import measure, ours
    from bench.workloads import workloads

    from tilewright.compiler import interpret
    from tilewright.compiler.target import Target
    from tilewright.db import open_store

    target = Target.parse(options.target)
    store = open_store(f"sqlite:///{options.store}") if options.store else None
    lines = ["|  | workload | choosing | default / tuned speed | |", "| --- | --- | --- | --- | --- |"]
    print("\n".join(lines))
    shares = []
    bad = 0
    names = options.workloads.split(",") if options.workloads else []
    for w in workloads(options.set.split(","), names):
        func = w.program()
        seconds = ours.default_seconds(func, target)
        found = ours.tuned(func, target, store, options.trials, options.seed)
        said, low = "-", False
        if found is not None:
            arrays = interpret.random_inputs(func, 0)
            entered = {
                "tuned": (ours.contender(func, target, found.trace), arrays),
                "default": (ours.contender(func, target), arrays),
            }
            samples = measure.interleaved(entered, options.rounds)
            median, _, _ = measure.ratio(samples["default"], samples["tuned"])
            shares.append(median)
            said, low = f"{median:.0%}", median < SHARE
        marks = [*(["slow to choose"] if seconds > CHOOSING else []), *(["far from tuned"] if low else [])]
        bad += bool(marks)
        lines.append(f"| {w.name} | {w.title} | {seconds * 1e3:.0f} ms | {said} | {', '.join(marks)} |")
        print(lines[-1], flush=True)
    if shares:
        print(f"\nGeometric mean {measure.geometric_mean(shares):.0%}, least {min(shares):.0%}")
    if options.markdown:
        options.markdown.write_text("\n".join(lines) + "\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
