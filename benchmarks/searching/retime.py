"""Kernels of one workload timed in turn in a fresh process, A-B-A-B.

Takes a JSON object as its only argument: workload, traces by name, rounds, processors, and perhaps `tvm`, the
folder with TVM's records. Prints the median seconds of each.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from pathlib import Path


def main() -> None:
    given = json.loads(sys.argv[1])
    os.sched_setaffinity(0, given["processors"])
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from bench import measure, ours
    from bench.workloads import workloads

    from tilewright.compiler import interpret
    from tilewright.compiler.schedule import Trace
    from tilewright.compiler.target import Target

    (w,) = workloads(("w",), (given["workload"],))
    func, target = w.program(), Target.parse(given.get("target", "llvm"))
    arrays = interpret.random_inputs(func, 0)
    entered = {
        name: (ours.contender(func, target, Trace.from_json(trace)), arrays)
        for name, trace in given["traces"].items()
    }
    if given.get("tvm"):
        from bench.peers_tvm import Tvm

        tvm = Tvm(Path(given["tvm"]), 0, 1, given["mcpu"], 0)
        entered |= {name: (contender, arrays) for name, contender in tvm.contenders(w).items()}
    samples = measure.interleaved(entered, given["rounds"], min(given["rounds"], 3))
    print(json.dumps({name: statistics.median(taken) for name, taken in samples.items()}))


if __name__ == "__main__":
    main()
