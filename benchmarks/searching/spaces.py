"""Searches on recorded spaces: how near they come to the optimum after so many evaluations.

Every strategy of ours searches through the session that `tilewright.tune` uses, beside Kernel Tuner's
strategies where an interpreter that has it is given. Seeds are counted from `--first-seed`. A figure is the
mean over seeds of the best time found over the optimum; `to 95%` is the median number of evaluations until
the best time is within 1 / 0.95 of the optimum, `> 200` where most searches do not come there.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median
from typing import Any

from tilewright.tuner.cost_model import OBJECTIVES
from tilewright.tuner.recorded import RecordedSpace
from tilewright.tuner.strategies import DEFAULT, STRATEGIES
from tilewright.tuner.strategies.guided import Guided

from .peer_kernel_tuner import kernel_tuner
from .replaying import ABLATIONS, Contestant, Curves, curves, looked_up, named, of_objective

__all__ = ["add_arguments", "main", "run"]

AT = (25, 50, 100, 200)
"""Evaluations at which the best found is reported."""

SHARES = (0.90, 0.95, 0.99)
"""Shares of the optimum's speed to be reached."""

BUDGETS = (100, 200)
"""Kernel Tuner's `max_fevals`: 25, 50 and 100 are read from the first, since some strategies plan by it."""


@dataclass
class Table:
    """Rows of figures, as Markdown and as JSON."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def markdown(self) -> str:
        lines = [f"### {self.title}", "", "| " + " | ".join(self.columns) + " |"]
        lines.append("|" + "---|" * len(self.columns))
        lines += ["| " + " | ".join(row) + " |" for row in self.rows]
        return "\n".join([*lines, "", *self.notes, ""])

    def to_json(self) -> dict[str, Any]:
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {"title": self.title, "rows": rows, "notes": self.notes}


def ratio_at(found: Curves, optimum: float, evaluations: int) -> float:
    """Mean over seeds of best / optimum after so many evaluations (or all, where a search had fewer);
    infinite where one of them had no success by then."""
    best = [curve[:evaluations][-1] if curve else None for curve in found]
    return mean(float("inf") if b is None else b / optimum for b in best)


def evaluations_to(found: Curves, optimum: float, share: float) -> float:
    """Median over seeds of the evaluations until the best is within optimum / share; infinite where most
    searches do not come there."""
    limit = optimum / share
    counts = [
        next((n for n, best in enumerate(curve, 1) if best is not None and best <= limit), float("inf"))
        for curve in found
    ]
    return median(counts)


def figures(at: Callable[[int], Curves], optimum: float, most: int) -> tuple[str, ...]:
    """The cells of one contestant; `at` gives the curves that are read at so many evaluations."""
    cells = [f"{ratio_at(at(n), optimum, n):.3f}" for n in AT if n <= most]
    reached = (evaluations_to(at(most), optimum, share) for share in SHARES)
    return (*cells, *(f"{n:g}" if n < float("inf") else f"> {most}" for n in reached))


def _columns(first: str, most: int) -> tuple[str, ...]:
    return (first, *(f"at {n}" for n in AT if n <= most), *(f"to {share:.0%}" for share in SHARES))


def _ours(
    title: str, space: RecordedSpace, contestants: Iterable[Contestant], options: argparse.Namespace
) -> Table:
    table = Table(title, _columns("search", options.evaluations))
    optimum = space.optimum * 1e3
    for contestant in contestants:
        found = curves(space, contestant, options.evaluations, _seeds(options), options.processes)
        table.rows.append((contestant.name, *figures(lambda _, c=found: c, optimum, options.evaluations)))
        print(f"  {space.name}: {contestant.name}: {', '.join(table.rows[-1][1:])}", flush=True)
    return table


def compared(space: RecordedSpace, options: argparse.Namespace) -> Table:
    """Our strategies and Kernel Tuner's on one space."""
    names = options.strategies.split(",") if options.strategies else sorted(STRATEGIES)
    table = _ours(f"{space.name}: {len(space.configs)} configurations", space, map(named, names), options)
    if options.kernel_tuner:
        budgets = sorted({b for b in BUDGETS if b < options.evaluations} | {options.evaluations})
        theirs = kernel_tuner(options.kernel_tuner, space, _seeds(options), budgets)
        for name in sorted(theirs.curves):
            cells = figures(
                lambda n, name=name: theirs.best_at(name, n), space.optimum * 1e3, options.evaluations
            )
            table.rows.append((f"Kernel Tuner {theirs.version}: {name}", *cells))
        table.notes += [f"Kernel Tuner's {name} is missing: {why}" for name, why in theirs.missing.items()]
    return table


def ablated(space: RecordedSpace, options: argparse.Namespace) -> Table:
    """The default without one of its parts."""
    return _ours(f"{space.name}: without a part", space, ABLATIONS, options)


def objectives(space: RecordedSpace, options: argparse.Namespace) -> Table:
    """The default with other objectives of its cost model."""
    title = f"{space.name}: what the cost model learns"
    return _ours(title, space, map(of_objective, OBJECTIVES), options)


def transferred(space: RecordedSpace, history: RecordedSpace, options: argparse.Namespace) -> Table:
    """The default with another device's table of the same parameters to begin with."""
    rows = [
        Contestant("without history", Guided),
        Contestant("model taught with it", Guided, history),
        Contestant("and its fastest 8 tried first", Guided, history, 8),
    ]
    table = _ours(f"{space.name}: with {history.name} as history", space, rows, options)
    found = [looked_up(space, history, options.evaluations)]
    cells = figures(lambda _: found, space.optimum * 1e3, options.evaluations)
    table.rows.append(("no search: its fastest, in order", *cells))
    return table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `run` reads of the command line."""
    parser.add_argument("--spaces", type=Path, metavar="DIR", help="folder of recorded spaces (*.json.gz)")
    parser.add_argument("--space", default="", help="comma-separated names; the others are left out")
    parser.add_argument("--seeds", type=int, default=50, help="searches of each (default: 50)")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--evaluations", type=int, default=200, help="of each search (default: 200)")
    parser.add_argument("--strategies", default="", help="comma-separated; ours (default: all)")
    parser.add_argument("--kernel-tuner", metavar="PYTHON", help="an interpreter that has Kernel Tuner")
    parser.add_argument("--ablation", action="store_true", help=f"also {DEFAULT} without its parts")
    parser.add_argument("--objectives", action="store_true", help="also the cost model's objectives")
    parser.add_argument("--history", metavar="NAME", help="only transfer, from the space of that name")
    parser.add_argument("--processes", type=int, default=1, help="that search at the same time (default: 1)")


def run(options: argparse.Namespace) -> list[Table]:
    """Prints and returns the tables that were asked for."""
    wanted = [name for name in options.space.split(",") if name]
    paths = sorted([*options.spaces.glob("*.json.gz"), *options.spaces.glob("*.json")])
    spaces = {space.name: space for space in map(RecordedSpace.load, paths)}
    for name in [*wanted, *([options.history] if options.history else [])]:
        if name not in spaces:
            raise SystemExit(
                f"no space {name!r} in {options.spaces}; there are: {', '.join(spaces) or 'none'}"
            )
    tables = []
    for space in [space for name, space in spaces.items() if not wanted or name in wanted]:
        if options.history:
            history = spaces[options.history]
            same = history.columns.feature_names == space.columns.feature_names
            if same and history is not space:
                tables.append(transferred(space, history, options))
            continue
        tables.append(compared(space, options))
        if options.ablation:
            tables.append(ablated(space, options))
        if options.objectives:
            tables.append(objectives(space, options))
    for table in tables:
        print(table.markdown(), flush=True)
    return tables


def _seeds(options: argparse.Namespace) -> Sequence[int]:
    return range(options.first_seed, options.first_seed + options.seeds)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_arguments(parser)
    parser.add_argument("--json", type=Path, help="write the tables to this file")
    parser.add_argument("--markdown", type=Path, help="write the tables to this file")
    options = parser.parse_args()
    if options.spaces is None:
        parser.error("--spaces DIR is needed")
    tables = run(options)
    if options.json:
        options.json.write_text(json.dumps([table.to_json() for table in tables], indent=1) + "\n")
    if options.markdown:
        options.markdown.write_text("\n".join(table.markdown() for table in tables))


if __name__ == "__main__":
    main()
