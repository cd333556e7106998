"""One workload: every contender made, checked, timed in turn, and set beside the machine's limits."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilewright.compiler import interpret
from tilewright.compiler.ir import PrimFunc, flop_count
from tilewright.compiler.target import Target
from tilewright.db import Store

from . import measure, ours, peak, peers
from .measure import Array, Contender
from .roofline import Demand, Limits, bound
from .workloads import Workload

#: How far a peer's result may lie from ours, as a share of the largest element: they round in other orders.
NEAR = {"float32": 1e-4, "float16": 1e-2, "bfloat16": 2e-2}


@dataclass(frozen=True, slots=True)
class Settings:
    """How workloads are run. trials 0: only what the store has. tvm: None, or what makes a contender of a
    workload by TVM, if it can."""

    target: Target
    threads: int
    trials: int
    rounds: int
    placements: int
    seed: int
    store: Store | None
    tvm: Any = None
    with_peers: bool = True


def run(w: Workload, s: Settings, limits: Limits) -> dict[str, Any]:
    """The result of one workload, ready for JSON. Raises SystemExit when one of our kernels is wrong.

    The clock of a machine moves within minutes, so the peak is measured anew right before and after: the
    better of two medians, since the contenders' times are medians, too.
    """
    func = w.program()
    found = ours.tuned(func, s.target, s.store, s.trials, s.seed)
    arrays = interpret.random_inputs(func, 0)
    entered: dict[str, tuple[Contender, Sequence[Array]]] = {
        "default": (ours.contender(func, s.target), arrays)
    }
    if found is not None:
        entered["tuned"] = (ours.contender(func, s.target, found.trace), arrays)
    for name, (contender, _) in entered.items():
        _check(f"{w.name} {name}", func, contender, arrays)
    notes: list[str] = [] if found is not None else ["not tuned: the default schedule stands in"]
    entered |= _beside(w, s, notes)
    if s.with_peers:
        theirs = peers.contenders(w.arguments(), s.threads)
        if s.tvm is not None:
            theirs |= s.tvm.contenders(w)
        reference = _result(entered["tuned" if found else "default"][0], arrays)
        for name, c in theirs.items():
            try:
                problem = _unlike(_result(c, arrays), reference, str(func.inputs[0].dtype))
            except RuntimeError as e:
                problem = f"it refuses: {str(e).splitlines()[0][:120]}"
            if problem:
                notes.append(f"{name} left out: {problem}")
            else:
                entered[name] = (c, arrays)
    before = peak.peaks(s.target, s.threads, statistics.median)
    rested: dict[str, list[float]] = {}
    samples = measure.interleaved(entered, s.rounds, s.placements, s.threads > 1, rested)
    competing = [n for n in entered if n not in ("default", "tuned", *BESIDE)]
    result = summary(samples, competing)
    # A thread alone does not rest between samples.
    result["rested"] = summary(rested, competing) if s.threads > 1 else None
    demand = Demand.of(func)
    after = peak.peaks(s.target, s.threads, statistics.median)
    limit = bound(demand, replace(limits, peaks={n: max(before[n], v) for n, v in after.items()}))
    seconds = result["seconds"][result["ours"]]
    return {
        "workload": w.name,
        "title": w.title,
        "operator": dict(w.operator),
        "count": w.count,
        "threads": s.threads,
        "target": str(s.target),
        "flops": demand.flops,
        "bytes": demand.size,
        "intensity": demand.intensity,
        "gflops": {n: demand.flops / t / 1e9 for n, t in result["seconds"].items() if n not in BESIDE},
        "roofline": None
        if limit is None
        else {
            "seconds": limit.seconds,
            "by": limit.by,
            "level": limit.level,
            "peak": limit.peak,
            "bandwidth": limit.bandwidth,
            "reached": limit.seconds / seconds,
        },
        "choosing_default_seconds": ours.default_seconds(func, s.target),
        "trials": found.trials if found else None,
        "tuning_seconds": found.seconds if found else None,
        "round_flops": flop_count(w.beside.program()) if w.beside else None,
        "notes": notes,
        **result,
        "samples": samples,
    }


#: Contenders of our own that are there to be compared with: the tuned kernel of the next round size, and that
#: for one thread.
BESIDE = ("round", "one thread")


def _beside(w: Workload, s: Settings, notes: list[str]) -> dict[str, tuple[Contender, Sequence[Array]]]:
    made: dict[str, tuple[Contender, Sequence[Array]]] = {}
    func = w.program()
    if w.beside is not None:
        other = w.beside.program()
        found = ours.tuned(other, s.target, s.store, s.trials, s.seed)
        trace = found.trace if found else None
        made["round"] = (ours.contender(other, s.target, trace), interpret.random_inputs(other, 0))
    if s.threads > 1:
        alone = Target.parse({**s.target.to_json(), "num-threads": 1})
        found = ours.tuned(func, alone, s.store, s.trials, s.seed)
        trace = found.trace if found else None
        made["one thread"] = (ours.contender(func, alone, trace), interpret.random_inputs(func, 0))
    return made


def summary(samples: Mapping[str, Sequence[float]], theirs: Sequence[str]) -> dict[str, Any]:
    """Medians and ratios from samples in turn. `ours` is the tuned kernel, or without one the default; a
    ratio is another's time over ours. `best_peer` is the one with the lowest median."""
    medians = {n: statistics.median(x) for n, x in samples.items()}
    name = "tuned" if "tuned" in samples else "default"
    others = [n for n in samples if n != name]
    ratios = {n: measure.ratio(samples[name], samples[n]) for n in others}
    best = min(theirs, key=lambda n: medians[n]) if theirs else None
    return {
        "ours": name,
        "seconds": medians,
        "ratio": {n: {"median": m, "low": a, "high": b} for n, (m, a, b) in ratios.items()},
        "best_peer": best,
    }


def _check(name: str, func: PrimFunc, contender: Contender, arrays: Sequence[Array]) -> None:
    mine = [a.copy() for a in arrays]
    contender.make(mine)()
    checked = interpret.check(interpret.expected(func, interpret.random_inputs(func, 0)), mine)
    if not checked.ok:
        raise SystemExit(f"{name}: {checked.message}")


def _result(contender: Contender, arrays: Sequence[Array]) -> Array:
    mine = [a.copy() for a in arrays]
    return np.array(contender.read(contender.make(mine)(), mine), copy=True)


def _unlike(theirs: Array, reference: Array, dtype: str) -> str | None:
    """What a peer's result has that ours has not; None where they agree."""
    if theirs.size != reference.size:
        return f"its result has the shape {theirs.shape}, not {reference.shape}"
    a, b = theirs.astype(np.float64).reshape(reference.shape), reference.astype(np.float64)
    off = float(np.max(np.abs(a - b))) / max(float(np.max(np.abs(b))), 1e-30)
    return None if off <= NEAR.get(dtype, 0.0) else f"its result is off by {off:.1e} of the largest element"
