"""Searches of real workloads on this machine."""

from __future__ import annotations

import argparse
import json
import os
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import live_report, warm
from .processes import answer

#: Seconds of wall time that 64 trials may take, with one processor and with a second one that builds.
GOALS = {"W1": (12.0, 8.0), "W3": (6.0, None)}
#: A search has found what there is once it is so near to the best of a long one.
NEAR = 1.05
ABLATION = ("racing", "model", "local")

tables = live_report.tables


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `run` reads."""
    group = parser.add_argument_group("live")
    group.add_argument("--workloads", default="", help="comma-separated (default: W1-W10)")
    group.add_argument("--seeds", type=int, default=5, help="searches of each workload (default 5)")
    group.add_argument("--trials", type=int, default=64)
    group.add_argument("--best-of", type=int, default=1000, help="trials of the search to compare with")
    group.add_argument("--references", type=Path, help="JSON file that keeps the best of those long searches")
    group.add_argument("--processes", type=int, default=5, help="fresh processes to time winners in again")
    group.add_argument("--rounds", type=int, default=11, help="rounds in each of them")
    group.add_argument("--two", action="store_true", help="also with a second processor")
    group.add_argument("--warm", action="store_true", help="also begun with the other workloads' records")
    group.add_argument("--warm-trials", type=int, default=16)
    group.add_argument("--ablation", action="store_true", help="also without parts of the search")
    group.add_argument("--tvm-path", default="", help="site-packages with TVM, to search beside")
    group.add_argument("--tvm-workloads", default="W1,W5,W10")
    group.add_argument("--tvm-store", type=Path, help="keeps TVM's records and wall times (default: none)")
    group.add_argument("--work", type=Path, default=Path("benchmark-search"), help="folder for stores")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Every workload by itself; see `live_report` for what the parts mean."""
    from bench.workloads import workloads

    names = [n for n in options.workloads.split(",") if n]
    options.work.mkdir(parents=True, exist_ok=True)
    chosen = workloads(("w",), names)
    known = warm.records(chosen, options) if options.warm else None
    found: dict[str, Any] = {}
    for w in chosen:
        found[w.name] = _workload(w.name, options, known)
        print(live_report.line(w.name, found[w.name]), flush=True)
    return {
        "trials": options.trials,
        "seeds": options.seeds,
        "best_of": options.best_of,
        "warm_trials": options.warm_trials,
        "workloads": found,
    }


def _workload(name: str, options: argparse.Namespace, known: Path | None) -> dict[str, Any]:
    one, two = processors()
    reference = _reference(name, options, one)
    seeds = range(options.seeds)

    def searches(**more: Any) -> list[dict[str, Any]]:
        given = {"workload": name, "trials": options.trials, "processors": one} | more
        runs = [answer("one_search", **given, seed=seed) for seed in seeds]
        return [judged(r, reference, _again(name, r, reference, options, one)) for r in runs]

    result: dict[str, Any] = {"goals": GOALS.get(name), "one": searches()}
    if options.two and two is not None:
        result["two"] = searches(processors=two)
    if known is not None:
        result["warm"] = [
            judged(r, reference, _again(name, r, reference, options, one))
            for r in warm.searches(name, known, options, one)
        ]
    if options.ablation:
        result["without"] = {part: searches(without=part) for part in ABLATION}
    if options.tvm_path and name in options.tvm_workloads.split(","):
        result["tvm"] = _tvm(name, options, one, result["one"])
    return result


def processors() -> tuple[list[int], list[int] | None]:
    """The last processor that this process may use, as the first ones serve interrupts; and the last two."""
    allowed = sorted(os.sched_getaffinity(0))
    return allowed[-1:], allowed[-2:] if len(allowed) > 1 else None


def _reference(name: str, options: argparse.Namespace, one: Sequence[int]) -> dict[str, Any]:
    """The best of a long search, from the file if it is there."""
    kept: dict[str, Any] = {}
    if options.references and options.references.exists():
        kept = json.loads(options.references.read_text())
    key = f"{name}-{options.best_of}"
    if key not in kept:
        seed = 1000  # none of those that are compared
        found = answer("one_search", workload=name, trials=options.best_of, processors=one, seed=seed)
        kept[key] = {k: found[k] for k in ("trace", "seconds", "trials", "wall")}
        if options.references:
            options.references.write_text(json.dumps(kept))
    reference: dict[str, Any] = kept[key]
    return reference


def _again(
    name: str,
    found: Mapping[str, Any],
    reference: Mapping[str, Any],
    options: argparse.Namespace,
    one: Sequence[int],
) -> float:
    """The winner's time over that of the long search, both timed in turn in fresh processes."""
    traces = {"found": found["trace"], "reference": reference["trace"]}
    ratios = []
    for _ in range(options.processes):
        told = answer("retime", workload=name, traces=traces, rounds=options.rounds, processors=one)
        ratios.append(told["found"] / told["reference"])
    return statistics.median(ratios)


def judged(found: dict[str, Any], reference: Mapping[str, Any], ratio: float) -> dict[str, Any]:
    """A search with `ratio`, its winner's time over the reference's, and when its curve came within NEAR."""
    goal = NEAR * found["seconds"] / ratio
    trials, wall = reached(found["curve"], goal)
    kept = {k: v for k, v in found.items() if k != "curve"}
    return kept | {
        "ratio": ratio,
        "reference_trials": reference["trials"],
        "overhead": found["search_seconds"] / found["wall"],
        "overhead_with_loading": (found["search_seconds"] + found["split"]["load"]) / found["wall"],
        "near_trials": trials,
        "near_seconds": wall,
        "curve": found["curve"],
    }


def reached(curve: Iterable[Sequence[float | None]], goal: float) -> tuple[int | None, float | None]:
    """The number of trials, and the seconds, after which the best was at most `goal`; None for never."""
    for number, (at, best) in enumerate(curve, 1):
        if best is not None and best <= goal:
            return number, at
    return None, None


def _tvm(
    name: str, options: argparse.Namespace, one: Sequence[int], ours: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """TVM's wall time of as many trials, and when our searches had what its best takes."""
    from tilewright.compiler.target import Target

    folder = options.tvm_store or options.work / "tvm"
    folder.mkdir(parents=True, exist_ok=True)
    given = {"workload": name, "mcpu": Target.parse("llvm").mcpu, "path": options.tvm_path}
    times = folder / "wall.json"
    walls = json.loads(times.read_text()) if times.exists() else {}
    key = f"{name}-{options.trials}"
    if key not in walls:
        found = answer(
            "tvm_search", **given, trials=options.trials, seed=0, folder=str(folder), processors=one
        )
        walls[key] = found["wall"]
        times.write_text(json.dumps(walls))
    reached_at = []
    for search in ours:
        told = answer(
            "retime",
            **given,
            traces={"found": search["trace"]},
            tvm=str(folder),
            rounds=options.rounds,
            processors=one,
        )
        goal = search["seconds"] * told["tvm"] / told["found"] if "tvm" in told else 0.0
        reached_at.append(
            {"ratio": told.get("tvm", 0.0) / told["found"], "seconds": reached(search["curve"], goal)[1]}
        )
    return {"wall": walls[key], "searches": reached_at}
