"""Our kernels as contenders: the default schedule, and the best of a search or of a store."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass

import tilewright as tw
from tilewright.compiler.ir import PrimFunc, workload_key
from tilewright.compiler.schedule import Trace
from tilewright.compiler.space import default_schedule
from tilewright.compiler.target import Target, detect
from tilewright.db import Store
from tilewright.tuner.errors import NoLegalCandidate

from .measure import Array, Call, Contender


@dataclass(frozen=True, slots=True)
class Tuned:
    """A trace, and what finding it took (0 trials: the store had it)."""

    trace: Trace
    trials: int
    seconds: float


def tuned(func: PrimFunc, target: Target, store: Store | None, trials: int, seed: int) -> Tuned | None:
    """The best schedule that the store knows for this hardware, else that of a search, which the store keeps;
    None for no trials and nothing stored, or where no candidate is legal or works."""
    if store is not None:
        known = store.best(workload_key(func), target.key, detect().key)
        if known is not None:
            return Tuned(Trace.from_json(json.loads(known.trace)), 0, 0.0)
    if not trials:
        return None
    began = time.perf_counter()
    try:
        record = tw.tune(func, target=target, trials=trials, store=store, seed=seed, progress=False)
    except NoLegalCandidate:
        return None
    if record.trace is None:
        return None
    return Tuned(record.trace, record.trial_count, time.perf_counter() - began)


def default_seconds(func: PrimFunc, target: Target, rounds: int = 3) -> float:
    """The least processor time that choosing the default schedule takes."""
    best = float("inf")
    for _ in range(rounds):
        start = time.thread_time()
        default_schedule(func, target)
        best = min(best, time.thread_time() - start)
    return best


def contender(func: PrimFunc, target: Target, trace: Trace | None = None) -> Contender:
    """Our kernel with the schedule of a trace, or the default one; constants are packed when a call is made,
    as peers do."""
    module = tw.build(func if trace is None else trace.apply(func), target=target)

    def make(arrays: Sequence[Array]) -> Call:
        given = list(zip(module.params, arrays, strict=True))
        constants = {p.name: a for p, a in given if p.is_constant}
        ready = module.with_constants(constants) if constants else module
        return ready.bind(*(a for p, a in given if not p.is_constant))

    return Contender(make, lambda _, arrays: arrays[-1])
