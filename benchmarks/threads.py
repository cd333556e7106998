"""What parallel loops cost and bring: a launch of the thread pool while its threads look for work and after
they went to sleep, the processor time of an idle pool, and W1 and W5 on one thread and on several.

Wall time; of the kernels' samples only those count during which the system interrupted none of the threads,
taken in turn: one thread, several, one, … On a machine that does other work at the same time few samples are
left, and the ratios say little. Run on an idle one: python benchmarks/threads.py --trials 64
"""

from __future__ import annotations

import argparse
import ctypes
import json
import resource
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilewright.compiler.ir import PrimFunc

LAUNCHES = """\
declare void @tilewright_parallel(ptr, ptr, i64, i64)
define internal void @nothing(i64 %begin, i64 %end, i64 %thread, ptr %context) {
  ret void
}
define void @launches(i64 %n, i64 %threads) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  call void @tilewright_parallel(ptr @nothing, ptr null, i64 64, i64 %threads)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}
"""
SAMPLE_SECONDS = 0.02
IDLE_SECONDS = 0.3


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--workloads", default="W1,W5")
    parser.add_argument(
        "--trials", type=int, default=64, help="for each workload and number of threads; 0: default schedules"
    )
    parser.add_argument("--rounds", type=int, default=40, help="samples of each contender")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    return parser.parse_args()


def pool(threads: int) -> dict[str, float]:
    """Microseconds of a launch, hot and after sleep, and the share of a core that an idle pool takes."""
    from tilewright.compiler.codegen.llvm.jit import compile_ir
    from tilewright.compiler.target import Target

    code = compile_ir(LAUNCHES, Target.parse("llvm"), ("launches",))
    launches = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)(code.address("launches"))
    launches(1000, threads)
    hot = [_microseconds(lambda: launches(1000, threads)) / 1000 for _ in range(200)]
    asleep = []
    for _ in range(100):
        time.sleep(0.005)
        asleep.append(_microseconds(lambda: launches(1, threads)))
    launches(1000, threads)
    time.sleep(0.1)
    before = time.process_time()
    time.sleep(IDLE_SECONDS)
    return {
        "hot_us": min(hot),
        "hot_median_us": statistics.median(hot),
        "asleep_median_us": statistics.median(asleep),
        "idle_core_share": (time.process_time() - before) / IDLE_SECONDS,
    }


def _microseconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1e6


def kernels(func: PrimFunc, threads: int, trials: int) -> dict[str, Callable[[], None]]:
    """The contenders, checked: for one thread, for several, and the latter held to one."""
    import tilewright as tw
    from tilewright.compiler import interpret
    from tilewright.compiler.runtime import pool

    expected = interpret.expected(func, interpret.random_inputs(func, 0))
    calls: dict[str, Callable[[], None]] = {}
    for n in (1, threads):
        target = f"llvm -num-threads={n}"
        if trials:
            record = tw.tune(func, target=target, trials=trials, progress=False)
            kernel = tw.build(record.trace.apply(func), target=target)
        else:
            kernel = tw.build(func, target=target)
        arrays = interpret.random_inputs(func, 0)
        kernel(*arrays)
        checked = interpret.check(expected, arrays)
        if not checked.ok:
            raise SystemExit(f"{func.name} on {n} threads: {checked.message}")
        calls[f"{n}"] = kernel.bind(*arrays)
    several = calls[f"{threads}"]

    def held() -> None:
        pool.set_num_threads(1)
        several()
        pool.set_num_threads(None)

    return {**calls, f"{threads} held to 1": held}


Sample = tuple[float, float, bool]
"""Seconds of a call, processor seconds of all threads in it, and whether none of them was interrupted."""


def timed(calls: dict[str, Callable[[], None]], rounds: int) -> dict[str, list[Sample]]:
    """Samples of the contenders, taken in turn."""
    repeats = {}
    for name, call in calls.items():
        call()
        repeats[name] = max(1, round(SAMPLE_SECONDS * 1e6 / min(_microseconds(call) for _ in range(5))))
    samples: dict[str, list[Sample]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            call()  # wakes the threads
            before, used, start = _interruptions(), time.process_time(), time.perf_counter()
            for _ in range(repeats[name]):
                call()
            seconds = (time.perf_counter() - start) / repeats[name]
            used = (time.process_time() - used) / repeats[name]
            samples[name].append((seconds, used, _interruptions() == before))
    return samples


def _interruptions() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def main() -> None:
    """Prints the figures, and writes them where asked."""
    options = arguments()
    from bench.workloads import W

    from tilewright.compiler.target import detect

    facts = detect().facts
    print(f"{facts['model_name']}, {facts['usable_cores']} cores usable")
    costs = pool(options.threads)
    print(
        f"launch on {options.threads} threads: {costs['hot_us']:.2f} us hot (median "
        f"{costs['hot_median_us']:.2f}), {costs['asleep_median_us']:.1f} us from sleep; "
        f"an idle pool takes {costs['idle_core_share']:.2%} of a core"
    )
    results: dict[str, Any] = {"facts": facts, "pool": costs, "kernels": {}}
    for workload in W:
        if workload.name not in options.workloads.split(","):
            continue
        print(f"\n{workload.name}  {workload.title}")
        calls = kernels(workload.program(), options.threads, options.trials)
        samples = timed(calls, options.rounds)
        results["kernels"][workload.name] = samples
        best: dict[str, float] = {}
        for name, taken in samples.items():
            kept = sorted(s for s, _, is_quiet in taken if is_quiet) or sorted(s for s, _, _ in taken)
            quiet = sum(q for _, _, q in taken)
            best[name] = kept[0]
            print(
                f"  threads {name:12} {kept[0] * 1e6:10.1f} us at best, median "
                f"{statistics.median(kept) * 1e6:10.1f} us, {quiet} of {len(taken)} samples undisturbed; "
                f"{min(used for _, used, _ in taken) * 1e6:10.1f} us of processor time"
            )
        one, several = best["1"], best[f"{options.threads}"]
        print(f"  {options.threads} threads are {one / several:.2f} x as fast as one")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1, default=str))


if __name__ == "__main__":
    main()
