"""Mutates programs as a stranger would, and runs those that are taken, on arrays between pages without
access.

`fuzz_programs.py SEED COUNT [SECONDS]` prints a line of JSON for each mutant that is taken, before it runs:
what the last one is when this process dies is what did it.
"""

from __future__ import annotations

import copy
import json
import math
import random
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "fuzz"))
sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from guarded import Guarded
from hostile_programs import guarded, reading

from tilewright import topi
from tilewright.compiler.build import build
from tilewright.compiler.codegen.errors import BuildError
from tilewright.compiler.ir import PrimFunc, VerifyError, from_json, to_json
from tilewright.compiler.schedule import Schedule

Json = Any

_OPERATORS: list[dict[str, Any]] = [
    {"op": "matmul", "m": 5, "n": 6, "k": 7, "dtype": "float32"},
    {"op": "pool1d", "n": 1, "c": 2, "width": 11, "kind": "max", "kernel": 3, "stride": 2, "padding": 1},
    {"op": "softmax", "shape": [3, 5], "dtype": "float32"},
    {"op": "transpose", "shape": [3, 4, 5], "axes": [2, 0, 1], "dtype": "int32"},
]
MOST_POINTS = 200_000
"""Of the loops of a mutant that is run."""

NUMBERS = [0, 1, -1, 2, 3, 4, 5, 7, 8, 16, 17, 63, 64, 65, 255, 256, -2, -7, 2**31, 2**52, 2**53, -(2**31)]
WORDS = [
    "floordiv",
    "ceildiv",
    "min",
    "max",
    "load",
    "select",
    "in_bounds",
    "add",
    "mul",
    "index",
    "size",
    "cast",
]


def seeds() -> list[Json]:
    """Programs that are taken, of many kinds."""
    found = [
        reading([[1, 3]]),
        reading([[1, ["floordiv", [[1, 2], [1, 3]], 2]], [1]]),
        reading([[1, ["min", [[2, 2], [1, 3]], 15]]]),
        guarded([[2, 3], [1, 2], [-16]], [[2, 3], [1, 2]]),
    ]
    for operator in _OPERATORS:
        try:
            found.append(to_json(topi.create(dict(operator))))
        except topi.OperatorError:
            continue
    return found


def mutated(program: Json, rng: random.Random, others: list[Json]) -> Json:
    """A copy with a few places changed: numbers, words, parts put elsewhere, left out, doubled."""
    made = copy.deepcopy(program)
    for _ in range(rng.randint(1, 4)):
        places = [*_places(made)]
        holder, key = rng.choice(places)
        value = holder[key]
        choice = rng.random()
        if type(value) is int and choice < 0.7:
            holder[key] = rng.choice([value + 1, value - 1, value * 2, -value, rng.choice(NUMBERS)])
        elif isinstance(value, str) and choice < 0.5:
            holder[key] = rng.choice(WORDS)
        elif choice < 0.8:
            other, there = rng.choice([*_places(rng.choice([made, *others]))])
            holder[key] = copy.deepcopy(other[there])
        elif isinstance(value, list) and value:
            if rng.random() < 0.5:
                value.pop()
            else:
                value.append(copy.deepcopy(rng.choice(value)))
        elif isinstance(holder, dict):
            del holder[key]
    return made


def _places(node: Json) -> Any:
    for key in node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
        yield node, key
        yield from _places(node[key])


def taken(program: Json) -> PrimFunc | None:
    """The program, where the reader takes it. Nothing but VerifyError may come of any JSON."""
    try:
        return from_json(program)
    except VerifyError:
        return None


def small(func: PrimFunc) -> bool:
    """Whether it is worth running: of numbers alone, and soon over."""
    if func.sizes:
        return False
    points = (
        math.prod(f.var.extent.const or 0 for f in path) * math.prod(v.extent.const or 0 for v in b.iters)
        for path, b in func.blocks()
    )
    elements = (math.prod(e.const or 0 for e in b.shape) for b in func.params + func.allocs)
    return (
        max(points) <= MOST_POINTS**2
        and max(elements) <= MOST_POINTS
        and all(math.prod(f.var.extent.const or 0 for f in path) <= MOST_POINTS for path, _ in func.blocks())
    )


def run(func: PrimFunc, rng: random.Random) -> str | None:
    """What was wrong with a call, with arrays at the end and at the start of their pages."""
    try:
        module = build(Schedule(func))
    except BuildError:
        return None
    for at_end in (True, False):
        held = []
        for param in func.params:
            shape = tuple(e.const or 0 for e in param.shape)
            held.append(Guarded(np.zeros(shape, param.dtype.numpy), at_end=at_end))
        try:
            module.bind(*(one.array for one in held))()
            if not all(one.untouched() for one in held):
                return "it wrote beside an array"
        finally:
            for one in held:
                one.free()
    return None


def main(seed: str, count: str, seconds: str = "1e9") -> int:
    rng = random.Random(seed)
    programs = seeds()
    ends = time.monotonic() + float(seconds)
    ran = read = 0
    while ran < int(count) and time.monotonic() < ends:
        program = mutated(rng.choice(programs), rng, programs)
        json.dumps(program)
        begun = time.process_time()
        func = taken(program)
        read += 1
        if time.process_time() - begun > 10:
            print(json.dumps({"slow": program}))
            return 1
        if func is None or not small(func):
            continue
        print(json.dumps(program), flush=True)
        if (wrong := run(func, rng)) is not None:
            print(json.dumps({"wrong": wrong}))
            return 1
        ran += 1
    print(json.dumps({"read": read, "ran": ran}))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
