"""Fits the coefficients of the default schedule's estimate (CYCLES in compiler/space/default.py) to times.

`--collect FILE` times configs of every sketch of the workloads, one JSON line each: every other one drawn at
random, the rest from the tenth that the present estimate likes best, since that is where it has to be right.
It goes on where the file ends, so it may run in portions (`--seconds`).

`--fit FILE` finds coefficients of at least 0 that bring the estimates, by ratio, as near as can be to the
times: least squares of the logarithms, a fast config counting more than a slow one, a factor common to a
workload counting little, and what the times do not tell staying as it is; then near them for coefficients
under which the chosen configs are fast. It prints them, and for each
workload the rank correlation and how much longer than the best config the chosen one took, before and after.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from bench.machine import restart_with_threads

#: Configs of each sketch that `--collect` makes.
CONFIGS = 40
#: Configs timed at one visit of a sketch.
VISIT = 4
#: Seconds of a sample, and how many are taken.
SAMPLE, SAMPLES = 0.005, 3


def collect(file: Path, chosen: list[Any], target: Any, seconds: float) -> None:
    """Appends timed configs to the file until the time is up, but at least those of one workload, or until
    every sketch has its CONFIGS."""
    from tilewright.compiler.space import space_of

    until = time.monotonic() + seconds
    lines = [json.loads(x) for x in file.read_text().splitlines()] if file.exists() else []
    have = Counter((x["workload"], x["sketch"]) for x in lines)
    with file.open("a") as out:
        for goal in range(VISIT, CONFIGS + VISIT, VISIT):
            for w in chosen:
                func, before = w.program(), have.total()
                for sketch in space_of(func, target).sketches:
                    done = have[w.name, sketch.name]
                    if done >= min(goal, CONFIGS):
                        continue
                    for row in drawn(sketch, target, CONFIGS)[done : min(goal, CONFIGS)]:
                        took = timed(func, sketch, row, target)
                        told = {"workload": w.name, "operator": dict(w.operator), "sketch": sketch.name}
                        told |= {"config": sketch.config(row), "seconds": took, "target": str(target)}
                        out.write(json.dumps(told) + "\n")
                        have[w.name, sketch.name] += 1
                    out.flush()
                if have.total() > before and time.monotonic() > until:
                    print(f"{sum(have.values())} configs; time is up", flush=True)
                    return
            print(f"{sum(have.values())} configs, {goal} of each sketch", flush=True)


def drawn(sketch: Any, target: Any, count: int) -> Any:
    """Configs of a sketch, the same at every call: random ones and ones from the best tenth, in turn. Shape
    (count or, where the sketch has fewer, less, knobs)."""
    import numpy as np

    from tilewright.compiler.space.default import estimate

    population = sketch.columns.random(1024, np.random.default_rng(1))
    if not len(population):
        return population
    liked = population[np.argsort(estimate(sketch, population, target), kind="stable")]
    liked = np.random.default_rng(2).permutation(liked[: max(1, len(liked) // 10)])
    rows = np.empty((2 * min(len(liked), len(population)), population.shape[1]), np.int64)
    rows[::2], rows[1::2] = population[: len(rows) // 2], liked[: len(rows) // 2]
    _, first = np.unique(rows, axis=0, return_index=True)
    return rows[np.sort(first)][:count]


def timed(func: Any, sketch: Any, row: Any, target: Any) -> float | None:
    """The least seconds of a call; None for a config that has no code."""
    from bench.measure import placed

    import tilewright as tw
    from tilewright.compiler import interpret
    from tilewright.compiler.codegen.errors import BuildError
    from tilewright.compiler.schedule import ScheduleError

    try:
        module = tw.build(sketch.resolve(row).apply(func), target=target)
    except (ScheduleError, BuildError):
        return None
    call = module.bind(*placed(interpret.random_inputs(func, 0), 16))
    call()
    start = time.thread_time()
    call()
    best = time.thread_time() - start
    repeats = max(1, round(SAMPLE / max(best, 1e-7)))
    for _ in range(SAMPLES if best < 0.2 else 0):
        start = time.thread_time()
        for _ in range(repeats):
            call()
        best = min(best, (time.thread_time() - start) / repeats)
    return best


def fit(file: Path, known: list[Any], target: Any) -> None:
    """Prints fitted coefficients, and what they are worth."""
    import numpy as np
    from bench.fitting import fitted, judged, refined
    from bench.peak import peaks

    from tilewright.compiler.space import space_of
    from tilewright.compiler.space.default import CYCLES, terms_of

    hertz = peaks(target)["float32"] / (4 * target.lanes(32))
    workloads = {w.name: w for w in known}
    lines = [json.loads(x) for x in file.read_text().splitlines()]
    rows: list[Any] = []
    cycles: list[float] = []
    names: list[str] = []
    for name in dict.fromkeys(x["workload"] for x in lines):
        for sketch in space_of(workloads[name].program(), target).sketches:
            mine = [x for x in lines if (x["workload"], x["sketch"]) == (name, sketch.name) and x["seconds"]]
            mine = [x for x in mine if set(x["config"]) == {k.name for k in sketch.knobs}]
            if not mine:
                continue
            population = np.array([[x["config"][k.name] for k in sketch.knobs] for x in mine], np.int64)
            rows.append(terms_of(sketch, population, target))
            cycles += [x["seconds"] * hertz for x in mine]
            names += [name] * len(mine)
    if not rows:
        raise SystemExit(f"{file} holds no times of configs that the sketches still have")
    table, times, groups = np.concatenate(rows), np.array(cycles), np.array(names)
    before = np.array(list(CYCLES.values()))
    # Between the two, so that a round on few configs does not throw off what earlier ones found.
    start = np.sqrt(fitted(table, times, groups, before) * before)
    after = refined(table, times, groups, start)
    print(
        f"{len(times)} configs of {len(set(names))} workloads, {hertz / 1e9:.2f} GHz by the multiply-add peak"
    )
    for key, old, new in zip(CYCLES, before, after, strict=True):
        print(f'    "{key}": {new:.3g},  # {old:g} before')
    print("workload      configs  rank before after  chosen / best before after")
    for name in dict.fromkeys(names):
        mine_ = groups == name
        one, two = (judged(table[mine_] @ x, times[mine_]) for x in (before, after))
        print(f"{name:12} {mine_.sum():8} {one[0]:12.2f} {two[0]:5.2f} {one[1]:21.2f} {two[1]:5.2f}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--collect", type=Path, metavar="FILE")
    parser.add_argument("--fit", type=Path, metavar="FILE")
    parser.add_argument("--set", default="w,odd,models,narrow", help="comma-separated sets")
    parser.add_argument("--workloads", default="", help="comma-separated names of any set")
    parser.add_argument("--seconds", type=float, default=600.0, help="time for collecting (default: 600)")
    parser.add_argument("--target", default="llvm")
    options = parser.parse_args()
    restart_with_threads(1)
    from bench.workloads import workloads

    from tilewright.compiler.target import Target

    target = Target.parse(options.target)
    names = options.workloads.split(",") if options.workloads else []
    if options.collect:
        collect(options.collect, workloads(options.set.split(","), names), target, options.seconds)
    if options.fit:
        fit(options.fit, workloads(["all"]), target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
