"""One point of the search space, made concrete enough to be measured."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["Candidate", "Features", "candidate_key"]

Features = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """What is to be measured as trial `number` of a search.

    `trace` is the JSON text of the resolved trace. `row` holds the knob values in the order of the
    sketch's knobs; it is None, as `features` is, where a trial of an earlier run was made by another version
    and only what was stored of it is known.

    `predicted` is the score (best time over its own) that the cost model gave it before it was measured, None
    where no model did. `origin` says what proposed it: see Point.
    """

    number: int
    batch: int
    sketch: str
    row: tuple[int, ...] | None
    trace: str
    key: str
    features: Features | None = field(repr=False)
    predicted: float | None = None
    origin: str = ""


def candidate_key(workload: str, trace: str, target: str, codegen: str) -> str:
    """The identity by which nothing is measured twice: SHA-256 over the workload key, the canonical JSON text
    of the resolved trace, the target key and the version of the code generator."""
    parts = (json.dumps(codegen), json.dumps(target), trace, json.dumps(workload))
    document = '{{"codegen":{},"target":{},"trace":{},"workload":{}}}'.format(*parts)
    return hashlib.sha256(document.encode()).hexdigest()
