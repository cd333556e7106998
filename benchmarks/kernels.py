"""Our default and tuned kernels beside NumPy, PyTorch, onnxruntime and TVM, and beside the machine's limits.

Sets of workloads (`--set`): w (W1-W10), odd (127, 1000, 1023, primes, 7x7 images, 3 and 13 channels, each
beside the next round size), models (the unique layers of ResNet-50, MobileNet-V2 and BERT-base), suite (the
operator families of the Ansor and MetaSchedule evaluations), narrow (int8, bfloat16, float16), all.

Every contender of a workload is timed in turn, in one process, on arrays placed anew several times: thread
CPU time for one thread, wall time for more, of calls in a row and of the first call after a rest. Peak and
bandwidths are measured in the same run. Ratios are medians over interleaved pairs with their 95 % interval;
above 1, ours is faster. Peers have constant weights, and pack them ahead of time where they can. A peer that
is not installed is said to be missing.

`--store FILE` keeps the tuned schedules, so that a second run tunes nothing; with `--trials 0` only what is
stored is used, and a workload without one runs its default schedule. TVM is tuned with `--tvm-trials`, which
takes minutes a workload, and its schedules are kept in `--tvm-store DIR`.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.machine import restart_with_threads


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--set", default="w", help="comma-separated sets (default: w)")
    parser.add_argument("--workloads", default="", help="comma-separated names of any set, such as W1,O127")
    parser.add_argument("--target", default="llvm", help="such as 'llvm -mcpu=x86-64-v3' (default: the host)")
    parser.add_argument("--threads", default="1", help="comma-separated numbers of threads (default: 1)")
    parser.add_argument("--trials", type=int, default=64, help="candidates for each workload (default: 64)")
    parser.add_argument("--rounds", type=int, default=21, help="samples of each contender (default: 21)")
    parser.add_argument("--placements", type=int, default=7, help="times that arrays are placed (default: 7)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--store", help="SQLite file that keeps the tuned schedules")
    parser.add_argument("--tvm-trials", type=int, default=0, help="TVM's trials a workload (default: 0)")
    parser.add_argument("--tvm-store", type=Path, help="folder that keeps TVM's schedules")
    parser.add_argument("--no-peers", action="store_true", help="ours alone")
    parser.add_argument(
        "--changing-weights", action="store_true", help="our weights are arguments, not constants"
    )
    parser.add_argument("--json", type=Path, help="write every sample and ratio to this file")
    parser.add_argument("--markdown", type=Path, help="write the tables to this file")
    parser.add_argument("--plot", type=Path, help="write the roofline of the first thread count as SVG")
    return parser.parse_args()


def main() -> None:
    """Runs what was asked for; exits with 1 when a kernel computes something wrong."""
    options = arguments()
    counts = [int(n) for n in options.threads.split(",")]
    restart_with_threads(max(counts))
    from bench import bandwidth, machine, peak, peers, plot, report
    from bench.roofline import Limits
    from bench.run import Settings, run
    from bench.threads import use_threads
    from bench.workloads import workloads

    from tilewright.compiler.target import Target
    from tilewright.db import open_store

    names = options.workloads.split(",") if options.workloads else []
    chosen = workloads(options.set.split(","), names, not options.changing_weights)
    target = Target.parse(options.target)
    facts: dict[str, Any] = {
        **machine.facts(),
        "target": str(target),
        "peers": {} if options.no_peers else peers.versions(),
        "missing": list(peers.NEEDS) if options.no_peers else peers.missing(),
        "limits": {},
    }
    store = open_store(f"sqlite:///{options.store}") if options.store else None
    results: list[dict[str, Any]] = []
    for threads in counts:
        use_threads(threads)
        here = Target.parse({**target.to_json(), "num-threads": threads})
        limits = Limits(
            peak.peaks(target, threads), bandwidth.levels(), bandwidth.bandwidths(target, threads)
        )
        facts["limits"][str(threads)] = asdict(limits)
        print(report.heading({**facts, "limits": {str(threads): asdict(limits)}}), flush=True)
        tvm = None
        if "tvm" in facts["peers"] and options.tvm_store is not None:
            from bench.peers_tvm import Tvm

            tvm = Tvm(options.tvm_store, options.tvm_trials, threads, str(here.mcpu), options.seed)
        settings = Settings(
            here,
            threads,
            options.trials,
            options.rounds,
            options.placements,
            options.seed,
            store,
            tvm,
            not options.no_peers,
        )
        for w in chosen:
            results.append(run(w, settings, limits))
            print(report.table(results[-1:]).splitlines()[-1], flush=True)
            if options.json:
                options.json.write_text(json.dumps({**facts, "results": results}, indent=1))
    text = report.tables(facts, results)
    print(f"\n{text}", end="")
    if options.markdown:
        options.markdown.write_text(text)
    if options.plot:
        options.plot.write_text(plot.roofline(facts, [r for r in results if r["threads"] == counts[0]]))


if __name__ == "__main__":
    main()
