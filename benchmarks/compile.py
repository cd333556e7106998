"""How long compiling takes: the trace of a matrix product applied and lowered, LLVM, a long function, the
import.

Processor time of one thread, medians over rounds, on W1 (matmul 1024x1024x1024) with its best schedule: that
of `--store FILE` (what benchmarks/kernels.py --store keeps), else the default one.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from bench.workloads import W

import tilewright as tw
from tilewright.compiler.codegen.llvm.jit import compile_ir
from tilewright.compiler.codegen.lower import lower
from tilewright.compiler.schedule import Trace
from tilewright.compiler.space import default_schedule
from tilewright.compiler.target import detect
from tilewright.compiler.topi import create

#: Milliseconds that each may take.
LIMITS = {
    "apply the trace, lower, emit": 8.0,
    "LLVM, load": 20.0,
    "LLVM, 4000 lines": 300.0,
    "import tilewright": 300.0,
}
LINES = 4000


def milliseconds(call: Callable[[], object], rounds: int) -> float:
    """The median over rounds of the thread's processor time."""
    call()
    times = []
    for _ in range(rounds):
        start = time.thread_time()
        call()
        times.append(time.thread_time() - start)
    return statistics.median(times) * 1e3


def best_trace(store: str | None, target: tw.Target) -> tuple[Trace, str]:
    """The best schedule of W1, and where it is from."""
    func = W[0].program()
    if store is not None:
        from tilewright.compiler.ir import workload_key

        with tw.connect(f"sqlite:///{store}") as known:
            found = known.best(workload_key(func), target.key, detect().key)
        if found is None:
            raise SystemExit(f"{store} holds no schedule of W1 for {target} on this hardware")
        return Trace.from_json(json.loads(found.trace)), "tuned"
    return default_schedule(func, target).trace, "default"


def long_function(target: tw.Target) -> str:
    """LLVM text of at least LINES lines: a register tile whose reduction is unrolled further and further."""
    func = create({"op": "matmul", "m": 64, "n": 256, "k": 512})
    unroll = 8
    while True:
        sch = tw.Schedule(func)
        c = sch.get_block("C")
        i, j, k = sch.get_loops(c)
        i0, i1 = sch.split(i, [None, 8])
        j0, j1, j2 = sch.split(j, [None, 2, 16])
        k0, k1 = sch.split(k, [None, unroll])
        sch.reorder(i0, j0, k0, k1, i1, j1, j2)
        for loop in (k1, i1, j1):
            sch.unroll(loop)
        sch.vectorize(j2)
        sch.decompose_reduction(c, k0)
        text = lower(sch.func, target, max_instructions=4 * LINES).text
        if text.count("\n") >= LINES:
            return text
        unroll += 4


def import_seconds(rounds: int) -> float:
    """The median wall time of `import tilewright` in a fresh process, without Python's own start."""
    code = "import time; t = time.perf_counter(); import tilewright; print(time.perf_counter() - t)"
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in range(rounds)
    ]
    return statistics.median(float(r.stdout) for r in runs)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--store", help="SQLite file with a tuned schedule of W1")
    options = parser.parse_args()
    target = tw.Target.parse("llvm")
    func = W[0].program()
    trace, origin = best_trace(options.store, target)
    sch = trace.apply(func)
    lowered = lower(sch.func, target)
    long = long_function(target)
    found = {
        "apply the trace": milliseconds(lambda: trace.apply(func), options.rounds),
        "lower, emit": milliseconds(lambda: lower(sch.func, target), options.rounds),
        "LLVM, load": milliseconds(lambda: compile_ir(lowered.text, target, (lowered.name,)), options.rounds),
        "LLVM, 4000 lines": milliseconds(
            lambda: compile_ir(long, target, ("matmul",)), max(3, options.rounds // 4)
        ),
        "import tilewright": import_seconds(max(3, options.rounds // 2)) * 1e3,
    }
    found["apply the trace, lower, emit"] = found["apply the trace"] + found["lower, emit"]
    print(f"W1 with its {origin} schedule on {target}: {len(lowered.text.splitlines())} lines of LLVM text")
    print(f"long function: {len(long.splitlines())} lines; {os.cpu_count()} processors")
    for name, value in found.items():
        limit = f"  (at most {LIMITS[name]:g} ms)" if name in LIMITS else ""
        print(f"{name:32}{value:9.2f} ms{limit}")
    return 1 if any(found[name] > limit for name, limit in LIMITS.items()) else 0


if __name__ == "__main__":
    sys.exit(main())
