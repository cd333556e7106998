"""The workloads of tests/golden/workload_keys.txt, and their keys as this process computes them.

Each line of the file is a key and a workload: an operator's request as JSON, or `te.NAME` for a program
below. Lines may be added; none may change, since stored schedules are found by these keys. Run as a program,
it prints the file anew.
"""

import json
from pathlib import Path

from tilewright.compiler import te, topi
from tilewright.compiler.ir import PrimFunc, workload_key

GOLDEN = Path(__file__).parents[2] / "golden" / "workload_keys.txt"


def stencil() -> PrimFunc:
    """The mean of five neighbours, guarded at the border."""
    a = te.placeholder((17, 23), "float32", name="A")

    def element(i: te.Index, j: te.Index) -> te.Value:
        up = te.if_then_else(i >= 1, a[i - 1, j], 0.0)
        down = te.if_then_else(i < 16, a[i + 1, j], 0.0)
        left = te.if_then_else(j >= 1, a[i, j - 1], 0.0)
        right = te.if_then_else(j < 22, a[i, j + 1], 0.0)
        return (a[i, j] + up + down + left + right) / 5.0

    return te.create_prim_func([a, te.compute((17, 23), element, name="B")], name="stencil")


def fused_index() -> PrimFunc:
    """A matrix written as one row: quotients and remainders."""
    a = te.placeholder((6, 35), "int16", name="A")
    b = te.compute((210,), lambda i: a[i // 35, i % 35], name="B")
    return te.create_prim_func([a, b], name="fused_index")


def iota() -> PrimFunc:
    """Indices as values."""
    b = te.compute((5, 7), lambda i, j: te.cast(i * 7 + j, "int64"), name="B")
    return te.create_prim_func([b], name="iota")


def total() -> PrimFunc:
    """A sum over two axes, without dimensions."""
    a = te.placeholder((13, 4), "float64", name="A")
    i, j = te.reduce_axis((0, 13), name="i"), te.reduce_axis((0, 4), name="j")
    return te.create_prim_func([a, te.compute((), lambda: te.sum(a[i, j], axis=[i, j]), name="T")])


def extremes() -> PrimFunc:
    """Two outputs: the largest and the smallest of each row."""
    a = te.placeholder((9, 11), "float32", name="A")
    k, m = te.reduce_axis((0, 11), name="k"), te.reduce_axis((0, 11), name="m")
    high = te.compute((9,), lambda i: te.max(a[i, k], axis=k), name="high")
    low = te.compute((9,), lambda i: te.min(a[i, m], axis=m), name="low")
    return te.create_prim_func([a, high, low], name="extremes")


def masks() -> PrimFunc:
    """Booleans, bits and comparisons."""
    a = te.placeholder((31,), "uint8", name="A")
    m = te.compute((31,), lambda i: (a[i] > 7) | ~(a[i] == 3), name="M")
    b = te.compute((31,), lambda i: te.if_then_else(m[i], (a[i] ^ 255) >> 2, a[i] & 15), name="B")
    return te.create_prim_func([a, b], name="masks")


def constants() -> PrimFunc:
    """Immediates that JSON has no number for."""
    a = te.placeholder((3,), "float32", name="A")
    b = te.compute((3,), lambda i: te.maximum(te.minimum(a[i], float("inf")), float("-inf")) * 0.1, name="B")
    return te.create_prim_func([a, b], name="constants")


def gather_window() -> PrimFunc:
    """A window moved along a row, clamped to it."""
    a = te.placeholder((40,), "float32", name="A")
    r = te.reduce_axis((0, 5), name="r")
    b = te.compute((40,), lambda i: te.sum(a[te.minimum(i + r, 39)], axis=r), name="B")
    return te.create_prim_func([a, b], name="gather_window")


PROGRAMS = {
    f.__name__: f for f in (stencil, fused_index, iota, total, extremes, masks, constants, gather_window)
}


def workload(text: str) -> PrimFunc:
    """The program of one workload as the file names it."""
    return PROGRAMS[text[3:]]() if text.startswith("te.") else topi.create(json.loads(text))


def lines() -> list[tuple[str, str]]:
    """(key, workload) of each line."""
    return [(line[:64], line[65:]) for line in GOLDEN.read_text(encoding="ascii").splitlines()]


if __name__ == "__main__":
    for _, text in lines():
        print(workload_key(workload(text)), text)
