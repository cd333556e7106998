"""Compiles the layers of the demo with a server's schedules, checks them against NumPy in float64, and times
them side by side."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from demo import LAYERS

import tilewright as tw
from tilewright.compiler import interpret, topi
from tilewright.compiler.ir import flop_count

ROUNDS = 5
#: Seconds of one sample.
SAMPLE = 0.02

Array = np.ndarray[Any, np.dtype[Any]]


def conv_numpy(x: Array, w: Array, bias: Array, out: Array) -> None:
    """One matmul for each position of the kernel, over shifted views."""
    image = np.pad(x[0], ((0, 0), (1, 1), (1, 1)))
    _, h, v = x[0].shape
    out[0] = bias[:, None, None]
    for i in range(3):
        for j in range(3):
            window = image[:, i : i + h, j : j + v].reshape(len(image), -1)
            out[0] += (w[:, :, i, j] @ window).reshape(-1, h, v)
    np.maximum(out, 0, out=out)


def erf(x: Array) -> Array:
    """NumPy has no erf: Abramowitz and Stegun, formula 7.1.26; absolute error below 1.5e-7."""
    t = 1 / (1 + 0.3275911 * np.abs(x))
    poly = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return np.asarray(np.sign(x) * (1 - poly * np.exp(-x * x)), x.dtype)


def dense_numpy(x: Array, w: Array, bias: Array, out: Array) -> None:
    """A matmul, then gelu by whole-array operations."""
    np.matmul(x, w, out=out)
    out += bias
    out *= 0.5 * (1 + erf(out * np.asarray(2**-0.5, out.dtype)))


def sample(call: Callable[[], object], seconds: float) -> float:
    """Thread CPU seconds of one call, over at least `SAMPLE` seconds."""
    repeats = max(1, round(SAMPLE / max(seconds, 1e-7)))
    start = time.thread_time()
    for _ in range(repeats):
        call()
    return (time.thread_time() - start) / repeats


def compare(title: str, layer: dict[str, Any], numpy: Callable[..., None], store: Any) -> bool:
    """Prints how the schedule was found, the error and the times; whether the output is right and the
    schedule known."""
    func = topi.create(layer)
    tuned = tw.build(func, target="llvm", schedules=store)
    source = tuned.schedule_source
    print(f"\n{title}\n  schedule: {source.kind}" + (f" ({source.reason})" if source.reason else ""))
    kernels = {
        "tuned": tuned,
        "default schedule": tw.build(func, target="llvm"),
        "unscheduled loop nest": tw.build(tw.Schedule(func), target="llvm"),
    }
    wide: list[Array] = [a.astype(np.float64) for a in interpret.random_inputs(func, 1)]
    numpy(*wide)
    right, calls = True, {}
    for name, kernel in kernels.items():
        arrays = interpret.random_inputs(func, 1)
        kernel(*arrays)
        error = float(np.max(np.abs(arrays[-1] - wide[-1])))
        size = float(np.max(np.abs(wide[-1])))
        # 8 * sqrt(K) * eps * magnitude, K terms of a sum; see interpret.check for the bound of every element.
        right &= error <= 1e-4 * size
        print(f"  {name}: largest difference from NumPy in float64 {error:.1e}, of values up to {size:.1f}")
        calls[name] = kernel.bind(*arrays)
    floats = interpret.random_inputs(func, 1)
    calls["NumPy"] = lambda: numpy(*floats)
    first = {name: sample(call, 1.0) for name, call in calls.items()}
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            if first[name] < 0.5 or not samples[name]:
                samples[name].append(sample(call, first[name]))
    medians = {name: statistics.median(s) for name, s in samples.items()}
    flops = flop_count(func)
    print("  timed side by side here; a worker's reading was taken elsewhere, on arrays of its own")
    for name, seconds in medians.items():
        ratio = "" if name == "tuned" else f"   tuned is {seconds / medians['tuned']:.2f} x as fast"
        print(f"  {name:22} {seconds * 1e6:11.1f} us {flops / seconds / 1e9:8.1f} GFLOP/s{ratio}")
    return right and source.kind == "exact"


def main() -> None:
    store = tw.connect(sys.argv[1])
    numpy = dict(zip(LAYERS, (conv_numpy, dense_numpy), strict=True))
    good = [compare(title, layer, numpy[title], store) for title, layer in LAYERS.items()]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
