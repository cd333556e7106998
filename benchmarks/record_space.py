"""Measures every configuration of one sketch, and writes them down as a recorded space.

The file (JSON: params, configs, time_ms with null for a failure, source) is what `search.py --spaces`
and tilewright.tuner.recorded read; gzipped where its name ends in .gz. Each configuration is built, checked
and timed as a candidate of a search is, `--rounds` times, of which the least time counts.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.compiler.space import Sketch, space_of
from tilewright.compiler.target import Target
from tilewright.compiler.topi import create
from tilewright.measure.messages import MeasureInput
from tilewright.measure.runner import Runner
from tilewright.tuner.opening import open_task
from tilewright.tuner.task import TuningTask


def milliseconds(task: TuningTask, sketch: Sketch, rows: np.ndarray, rounds: int) -> list[float | None]:
    """The least time of each row; None where it failed."""
    best: list[float | None] = [None] * len(rows)
    with Runner() as runner:
        for turn in range(rounds):
            for number, row in enumerate(rows):
                item = MeasureInput(
                    item=f"row-{number}",
                    attempt=turn + 1,
                    workload=task.workload,
                    target=task.target,
                    trace=sketch.resolve(row).to_json(),
                )
                seconds = runner.measure(item).seconds
                if seconds is not None:
                    best[number] = min(seconds * 1e3, best[number] or float("inf"))
    return best


def document(
    names: Sequence[str], rows: np.ndarray, times: Sequence[float | None], source: str
) -> dict[str, Any]:
    """What is written. A knob with a single value says nothing and is left out."""
    open_ = [n for n in range(len(names)) if len(np.unique(rows[:, n])) > 1]
    return {
        "source": source,
        "params": [names[n] for n in open_],
        "configs": rows[:, open_].tolist(),
        "time_ms": [None if time is None else round(time, 7) for time in times],
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workload", default='{"op": "matmul", "m": 4, "n": 64, "k": 64}', help="JSON")
    parser.add_argument("--sketch", default="", help="its name (default: the one with the fewest legal)")
    parser.add_argument("--most", type=int, default=2000, help="configurations at most (default: 2000)")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    func = create(json.loads(options.workload))
    target = Target.parse("llvm")
    every = {s.name: (s, s.columns.every(options.most)) for s in space_of(func, target).sketches}
    known = {name: (sketch, rows) for name, (sketch, rows) in every.items() if rows is not None}
    if not known or (options.sketch and options.sketch not in known):
        parser.error(f"sketches with at most {options.most} configurations: {', '.join(known) or 'none'}")
    name = options.sketch or min(known, key=lambda each: len(known[each][1]))
    sketch, rows = known[name]
    times = milliseconds(open_task(func, target), sketch, rows, options.rounds)
    source = f"tilewright, {options.workload}, sketch {name!r}"
    text = json.dumps(document([k.name for k in sketch.knobs], rows, times, source), separators=(",", ":"))
    data = text.replace('"time_ms"', '\n"time_ms"').encode() + b"\n"
    options.out.write_bytes(gzip.compress(data, mtime=0) if options.out.suffix == ".gz" else data)
    print(f"{len(rows)} configurations of {name!r}, {times.count(None)} failed")


if __name__ == "__main__":
    main()
