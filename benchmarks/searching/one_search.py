"""One search in a process of its own, as a user's program would make it: what `live` runs again and again.

Takes a JSON object as its only argument and prints one as its last line. `since` is the monotonic time at
which the process was started, so that start-up counts; `processors` are set before anything else.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

#: What an ablation leaves out: the arguments of tune, or of the default strategy.
WITHOUT = ("nothing", "racing", "model", "local", "history")


def main() -> None:
    given = json.loads(sys.argv[1])
    os.sched_setaffinity(0, given["processors"])
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from bench.workloads import workloads

    import tilewright as tw

    (w,) = workloads(("w",), (given["workload"],))
    without = given.get("without", "nothing")
    if without == "local":
        _leave_out_local()
    options = {"strategy": "random"} if without == "model" else {}
    curve: list[tuple[float, float | None]] = []
    store = tw.connect(f"sqlite:///{given['store']}") if given.get("store") else None
    record = tw.tune(
        w.program(),
        given.get("target", "llvm"),
        given["trials"],
        seed=given["seed"],
        store=store,
        history="ignore" if without == "history" else "use",
        racing=without != "racing",
        progress=False,
        observer=lambda s: curve.append((time.monotonic() - given["since"], s.best_seconds)),
        **options,
    )
    if store is not None:
        store.close()
    used = os.times()
    print(
        json.dumps(
            {
                "seconds": record.seconds,
                "gflops": record.gflops,
                "trials": record.trial_count,
                "failures": record.failures,
                "trace": record.trace.to_json() if record.trace else None,
                "strategy": record.strategy,
                "search_seconds": record.search_seconds,
                "tune_seconds": record.wall_seconds,
                "processor_seconds": sum(used[:4]),
                "split": record.split.to_json() if record.split else None,
                "curve": curve,
            }
        )
    )


def _leave_out_local() -> None:
    """The default strategy with the share of local refinement given to the model."""
    from tilewright.tuner import tune as module
    from tilewright.tuner.strategies.guided import Guided

    shares = dict(Guided().shares)
    shares["model"] += shares.pop("local")
    module.load_strategy = lambda name: Guided(shares=tuple(shares.items()))


if __name__ == "__main__":
    main()
