"""How many candidates a second one core scores: children made and checked against the constraints, their
features, what the cost model and the rules it begins with say. Processor time of one thread, the least of
many rounds.

The model is trained as it is in a search, on the features of random configs with the times that the default
schedule's estimate gives them. Children are made of as many parents as a search keeps; those that come out
twice are scored here all the same, and how many there were and what finding them takes stands beside.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from bench.workloads import workloads

from tilewright.compiler.space import Sketch, estimated_cycles, space_of
from tilewright.compiler.space.default import estimate
from tilewright.compiler.target import Target
from tilewright.tuner.cost_model import Corrected, CostModel, TrainingSet, available_model
from tilewright.tuner.estimate import Estimate
from tilewright.tuner.pool import Pool

#: Trials that the model is trained on, parents, and children scored at once.
TRAINED = 256
PARENTS = 512
CHILDREN = 8192
#: Candidates a second that a search needs on one core.
GOAL = 500_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `run` reads."""
    parser.add_argument("--scoring-rounds", type=int, default=21, help="rounds of each step (default 21)")
    parser.add_argument(
        "--scoring-workloads", nargs="*", default=[], metavar="W", help="names (default: W1-W10)"
    )


def run(options: argparse.Namespace) -> dict[str, Any]:
    """One item for each workload: the mean over its sketches, and each sketch by itself. Nanoseconds are for
    one candidate."""
    target = Target.parse("llvm")
    found: dict[str, Any] = {}
    print(f"{'':6}{'candidates/s':>14}{'mutate':>9}{'features':>10}{'predict':>9}{'columns':>9}  twice")
    for w in workloads(("w",), options.scoring_workloads, constant_weights=False):
        sketches = [
            _scored(s, target, options.scoring_rounds) for s in space_of(w.program(), target).sketches
        ]
        steps = {name: float(np.mean([s[name] for s in sketches])) for name in _STEPS}
        rate = 1e9 / sum(steps.values())
        found[w.name] = {"candidates_per_second": rate, **steps, "sketches": sketches}
        print(
            f"{w.name:6}{rate:14,.0f}{steps['mutate_ns']:9.0f}{steps['features_ns']:10.0f}"
            f"{steps['predict_ns']:9.0f}{sketches[0]['columns']:9}  "
            f"{np.mean([s['duplicates'] for s in sketches]):.0%}"
        )
    slow = [name for name, item in found.items() if item["candidates_per_second"] < GOAL]
    print(f"at least {GOAL:,} candidates a second: {'all' if not slow else 'not ' + ', '.join(slow)}")
    return {"target": str(target), "model": available_model().name, "workloads": found}


_STEPS = ("mutate_ns", "features_ns", "predict_ns")


def _scored(sketch: Sketch, target: Target, rounds: int) -> dict[str, Any]:
    columns, rng = sketch.columns, np.random.default_rng(0)
    model = _trained(sketch, target, rng)
    parents = columns.random(PARENTS, rng)
    children = columns.mutate(parents, CHILDREN, rng)
    features = columns.features(children)
    pool = Pool(0, sketch)
    n = len(children)
    return {
        "sketch": sketch.name,
        "columns": features.shape[1],
        "mutate_ns": _ns(lambda: columns.mutate(parents, CHILDREN, rng), n, rounds),
        "features_ns": _ns(lambda: columns.features(children), n, rounds),
        "predict_ns": _ns(lambda: model.predict(features), n, rounds),
        "unique_ns": _ns(lambda: pool.unique(children), n, rounds),
        "duplicates": 1 - len(pool.unique(children)) / n,
    }


def _trained(sketch: Sketch, target: Target, rng: np.random.Generator) -> CostModel:
    rows = sketch.columns.random(TRAINED, rng)
    seconds = estimate(sketch, rows, target)
    features = sketch.columns.features(rows)
    rules = Estimate.of(partial(estimated_cycles, target=target), list(features))
    assert rules is not None
    model = Corrected(available_model(), rules)
    scores = (seconds.min() / seconds).astype(np.float32)
    model.update(TrainingSet.plain(features, scores))
    return model


def _ns(call: Callable[[], object], n: int, rounds: int) -> float:
    """Processor time for one of n, in nanoseconds; the first calls do not count."""
    times = []
    for _ in range(rounds + 2):
        begun = time.thread_time()
        call()
        times.append(time.thread_time() - begun)
    return min(times[2:]) * 1e9 / n
