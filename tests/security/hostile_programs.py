"""Programs as JSON that a stranger might send. Variables of a nest of n loops are 0 … n-1, those of the block
in it n … 2n-1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Json = Any
ZERO = ["const", "float32", "0x0.0p+0"]


def nest(
    loops: Sequence[Json],
    block: dict[str, Json],
    *shapes: Sequence[Json],
    kind: str = "serial",
    sizes: int = 0,
    allocs: Sequence[Sequence[Json]] = (),
) -> dict[str, Json]:
    """The block in its loops; buffers of these shapes are the parameters, and then what is allocated."""
    body: dict[str, Json] = {"block": block}
    for extent in reversed(loops):
        body = {"for": {"extent": extent}, "kind": kind, "body": [body]}
    program = {
        "tilewright": 1,
        "params": [{"shape": list(shape), "dtype": "float32"} for shape in shapes],
        "body": [body],
    }
    if sizes:
        program["sizes"] = [{}] * sizes
    if allocs:
        program["allocs"] = [{"shape": list(shape), "dtype": "float32"} for shape in allocs]
    return program


def reading(
    index: Json, loops: Sequence[int] = (4, 10), extent: Json = 16, value: Json = None, sizes: int = 0
) -> dict[str, Json]:
    """B[i, j, …] = A[index], or of a value in its place; with `sizes` another array that has them."""
    n = len(loops)
    block = {
        "iters": [{"extent": e, "bind": [[1, v]]} for v, e in enumerate(loops)],
        "buffer": 1,
        "indices": [[[1, n + v]] for v in range(n)],
        "value": value or ["load", 0, index],
    }
    more = [[[[1, ["size", s]]] for s in range(sizes)]] if sizes else []
    return nest(loops, block, [extent], loops, *more, sizes=sizes)


def guarded(condition: Json, index: Json, loops: Sequence[int] = (4, 10)) -> dict[str, Json]:
    """B[i, j, …] = A[index] where condition < 0, else 0."""
    return reading(None, loops, value=["select", ["in_bounds", condition], ["load", 0, index], ZERO])


def doubling(blocks: int) -> dict[str, Json]:
    """Each block adds the result of the one before to itself: inlined, the last has 2**blocks terms."""
    body = [
        {
            "for": {"extent": 8},
            "body": [
                {
                    "block": {
                        "iters": [{"extent": 8, "bind": [[1, 2 * n]]}],
                        "buffer": 1 if n == blocks - 1 else n + 2,
                        "indices": [[[1, 2 * n + 1]]],
                        "value": ["add", *[["load", n + 1 if n else 0, [[1, 2 * n + 1]]]] * 2],
                    }
                }
            ],
        }
        for n in range(blocks)
    ]
    array = {"shape": [8], "dtype": "float32"}
    return {"tilewright": 1, "params": [array] * 2, "allocs": [array] * (blocks - 1), "body": body}
