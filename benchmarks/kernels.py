"""W1-W10: our unscheduled, default and tuned kernels beside NumPy and, where installed, PyTorch and
onnxruntime.

Every contender of a workload is timed in turn, in one process, on one thread: thread CPU time, medians over
rounds, and the ratio of each peer to our tuned kernel over interleaved pairs. `--json FILE` writes all
samples; `--store FILE` keeps what was tuned.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

THREADS = {n: "1" for n in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}


def restart_with_one_thread() -> None:
    """Libraries read these once, when they load. A setting that holds NumPy's BLAS to an older processor is
    dropped: peers run at their best."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_") or k in THREADS}
    if any(os.environ.get(k) != v for k, v in THREADS.items()) or len(clean) != len(os.environ):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**clean, **THREADS})


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workloads", help="comma-separated names, such as W1,W5n (default: all)")
    parser.add_argument(
        "--trials", type=int, default=64, help="measured candidates for each workload (default 64)"
    )
    parser.add_argument("--rounds", type=int, default=15, help="samples of each contender (default 15)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--store", help="SQLite file that keeps the tuned schedules")
    parser.add_argument("--json", type=Path, help="write every sample and ratio to this file")
    return parser.parse_args()


def commit() -> str:
    """The commit of the working tree, with a + when it has changes; `unknown` outside of a checkout."""
    git = ["git", "-C", str(Path(__file__).parent)]
    head = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    dirty = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, check=False)
    return (head.stdout.strip() or "unknown") + ("+" if dirty.stdout.strip() else "")


def run_one(workload: Any, options: argparse.Namespace, store: Any, peak: float) -> dict[str, Any]:
    """One workload: tuned, then every contender in turn."""
    import measure
    import peers

    import tilewright as tw
    from tilewright.compiler import interpret, topi
    from tilewright.compiler.ir import flop_count

    func = topi.create(dict(workload.operator))
    began = time.perf_counter()
    record = tw.tune(
        func, target="llvm", trials=options.trials, store=store, seed=options.seed, progress=False
    )
    tuning_seconds = time.perf_counter() - began
    kernels = {
        "unscheduled": tw.build(tw.Schedule(func), target="llvm"),
        "default": tw.build(func, target="llvm"),
        "tuned": tw.build(record.trace.apply(func), target="llvm"),
    }
    arrays = {name: interpret.random_inputs(func, 0) for name in kernels}
    expected = interpret.expected(func, interpret.random_inputs(func, 0))
    for name, kernel in kernels.items():
        kernel(*arrays[name])
        checked = interpret.check(expected, arrays[name])
        if not checked.ok:
            raise SystemExit(f"{workload.name} {name}: {checked.message}")
    contenders = {name: kernel.bind(*arrays[name]) for name, kernel in kernels.items()}
    inputs = [
        a for p, a in zip(func.params, interpret.random_inputs(func, 0), strict=True) if p in func.inputs
    ]
    contenders |= peers.calls(workload.peer, inputs)
    samples = measure.interleaved(contenders, options.rounds)
    ratios = {n: measure.ratio(samples["tuned"], s) for n, s in samples.items() if n != "tuned"}
    flops = flop_count(func)
    medians = {n: sorted(s)[len(s) // 2] for n, s in samples.items()}
    return {
        "workload": workload.name,
        "title": workload.title,
        "flops": flops,
        "seconds": medians,
        "gflops": {n: flops / s / 1e9 for n, s in medians.items()},
        "ratio_to_tuned": {n: {"median": m, "low": a, "high": b} for n, (m, a, b) in ratios.items()},
        "of_peak": flops / medians["tuned"] / peak,
        "trials": record.trial_count,
        "tuning_seconds": tuning_seconds,
        "samples": samples,
    }


def show(result: dict[str, Any]) -> None:
    """One workload's lines."""
    spent = f"{result['trials']} trials in {result['tuning_seconds']:.1f} s"
    print(f"\n{result['workload']}  {result['title']}   ({spent})")
    for name, seconds in result["seconds"].items():
        line = f"  {name:12} {seconds * 1e6:12.1f} us {result['gflops'][name]:9.1f} GFLOP/s"
        if name in result["ratio_to_tuned"]:
            r = result["ratio_to_tuned"][name]
            line += f"   tuned is {r['median']:.2f} x as fast  [{r['low']:.2f}, {r['high']:.2f}]"
        else:
            line += f"   {result['of_peak']:.0%} of the multiply-add peak"
        print(line, flush=True)


def main() -> None:
    """Runs what was asked for; exits with 1 when a kernel computes something wrong."""
    restart_with_one_thread()
    options = arguments()
    import peak
    import peers
    from workloads import WORKLOADS

    import tilewright as tw
    from tilewright.compiler.target import Target, detect

    target = Target.parse("llvm")
    names = options.workloads.split(",") if options.workloads else [w.name for w in WORKLOADS]
    unknown = sorted(set(names) - {w.name for w in WORKLOADS})
    if unknown:
        known = ", ".join(w.name for w in WORKLOADS)
        raise SystemExit(f"unknown workloads {', '.join(unknown)}; known: {known}")
    fma = peak.fma_peak(target)
    machine = detect().facts.get("model_name") or platform.processor()
    print(f"{machine}, {target}")
    copy = peak.bandwidth()
    print(f"one thread; multiply-add peak {fma / 1e9:.1f} GFLOP/s, copy bandwidth {copy / 1e9:.1f} GB/s")
    there = ", ".join(f"{n} {v}" for n, v in peers.versions().items())
    print(f"peers: {there}; missing: {', '.join(peers.missing()) or 'none'}")
    store = tw.connect(f"sqlite:///{options.store}") if options.store else None
    results = []
    for w in WORKLOADS:
        if w.name in names:
            results.append(run_one(w, options, store, fma))
            show(results[-1])
    if options.json:
        facts = {"machine": machine, "target": str(target), "commit": commit(), "peers": peers.versions()}
        facts |= {"python": platform.python_version(), "fma_peak": fma, "missing": peers.missing()}
        options.json.write_text(json.dumps({**facts, "results": results}, indent=1))


if __name__ == "__main__":
    main()
