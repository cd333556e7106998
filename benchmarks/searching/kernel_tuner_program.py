"""Runs Kernel Tuner's strategies on one recorded space, in an interpreter that has Kernel Tuner.

Imports nothing of this project. The request is JSON on stdin: `params`, `configs`, `time_ms` (null: failed),
`seeds` (a list), `budgets` (ascending evaluation limits) and `strategies` (null: every one of the installed
version that searches for one objective). The answer is JSON on stdout: the `version`, and for each strategy
either `best`, by budget a list over seeds of the best milliseconds after the evaluations 1, 2, … (null before
the first success), or `missing`, the reason why it cannot run.

A strategy runs once for each budget, since some plan by `max_fevals`. An evaluation is what Kernel Tuner's
own budget counts: a configuration of the space that was not looked up before, failed ones included. What
leaves the space costs nothing, as there.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import random
import sys
import tempfile
import warnings
from typing import Any


class InOrder(dict[str, None]):
    """A set of keys that remembers the order of their first coming."""

    def add(self, key: str) -> None:
        self.setdefault(key)


def cache_file(request: dict[str, Any], folder: str) -> tuple[str, dict[str, Any]]:
    """The space as one of Kernel Tuner's cache files, and its content."""
    params, configs = request["params"], request["configs"]
    cache = {}
    for config, time in zip(configs, request["time_ms"], strict=True):
        entry: dict[str, Any] = dict(zip(params, config, strict=True))
        entry["time"] = "RuntimeFailedConfig" if time is None else float(time)
        for part in ("compile_time", "verification_time", "benchmark_time"):
            entry[part] = 0.0
        cache[",".join(str(value) for value in config)] = entry
    content = {
        "device_name": "recorded",
        "kernel_name": "recorded",
        "problem_size": [1],
        "tune_params_keys": params,
        "tune_params": {p: sorted({c[n] for c in configs}) for n, p in enumerate(params)},
        "objective": "time",
        "cache": cache,
    }
    path = os.path.join(folder, "space.json")
    with open(path, "w") as file:
        json.dump(content, file)
    return path, content


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """What every strategy found."""
    from importlib.metadata import version

    import numpy as np
    from kernel_tuner import interface
    from kernel_tuner.runners import simulation
    from kernel_tuner.searchspace import Searchspace

    times = {
        ",".join(str(value) for value in config): time
        for config, time in zip(request["configs"], request["time_ms"], strict=True)
    }
    runners = []
    make = simulation.SimulationRunner.__init__

    def make_watched(self: Any, *arguments: Any, **more: Any) -> None:
        make(self, *arguments, **more)
        self.visited_results = InOrder()
        runners.append(self)

    simulation.SimulationRunner.__init__ = make_watched
    several = {"nsga2", "nsga3"}
    names = request["strategies"] or [
        name for name in interface.strategy_map if name not in several and name != "brute_force"
    ]
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        path, content = cache_file(request, folder)
        # Reading the file takes longer than a search: once is enough. A space is made anew for each run: it
        # remembers which neighbours it has handed out, and would carry that from one run into the next.
        loaded = interface.util.read_cache(path, open_cache=False)["cache"]
        interface.Searchspace = lambda *arguments, **more: Searchspace(None, None, None, from_cache=content)
        interface.util.process_cache = lambda *arguments: loaded

        def curve(name: str, seed: int, budget: int) -> list[float | None]:
            random.seed(seed)
            np.random.seed(seed)
            runners.clear()
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                interface.tune_kernel(
                    "recorded",
                    "",
                    (1,),
                    [],
                    content["tune_params"],
                    lang="C",
                    strategy=name,
                    strategy_options={"max_fevals": budget},
                    cache=path,
                    simulation_mode=True,
                    objective="time",
                    quiet=True,
                    verbose=False,
                    seed=seed,
                )
            (runner,) = runners
            best, values = math.inf, []
            for key in runner.visited_results:
                best = min(best, times[key] if times[key] is not None else math.inf)
                values.append(best if math.isfinite(best) else None)
            # A strategy that has come to its end before its budget keeps what it has.
            values += values[-1:] * (budget - len(values))
            return values[:budget]

        for name in names:
            try:
                found[name] = {
                    "best": {
                        str(budget): [curve(name, seed, budget) for seed in request["seeds"]]
                        for budget in request["budgets"]
                    }
                }
            except ImportError as error:
                found[name] = {"missing": str(error).splitlines()[0]}
            print(f"  kernel tuner: {name}", file=sys.stderr, flush=True)
    return {"version": version("kernel_tuner"), "strategies": found}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    result = answer(json.load(sys.stdin))
    json.dump(result, sys.stdout)
