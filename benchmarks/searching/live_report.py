"""What searches on this machine came to, as tables."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Searches = Sequence[Mapping[str, Any]]


def line(name: str, found: Mapping[str, Any]) -> str:
    """One workload on one line, for a terminal."""
    one = found["one"]
    words = [
        f"{name}: {_median(one, 'wall'):.1f} s",
        f"{_median(one, 'ratio'):.3f} x the long search's best",
    ]
    words.append(
        f"search {_median(one, 'overhead'):.0%} ({_median(one, 'overhead_with_loading'):.0%} with loading)"
    )
    if "two" in found:
        words.append(f"two processors {_median(found['two'], 'wall'):.1f} s")
    if "warm" in found:
        words.append(f"warm {_median(found['warm'], 'ratio'):.3f}")
    if "tvm" in found:
        words.append(f"TVM {found['tvm']['wall']:.0f} s, reached after {_tvm_seconds(found['tvm'])}")
    return ", ".join(words)


def tables(results: Mapping[str, Any]) -> str:
    """All tables, in Markdown. Medians over the seeds; `wall / processor` near 1 says that the machine was
    quiet."""
    trials, found = results["trials"], results["workloads"]
    head = (
        f"{trials} trials, medians over {results['seeds']} seeds. `best`: the winner's time over that of the "
        f"best of {results['best_of']} trials, both timed in turn in fresh processes."
    )
    parts = [head, _main(found)]
    if any("tvm" in f for f in found.values()):
        parts.append(_beside_tvm(found))
    if any("warm" in f for f in found.values()):
        parts.append(_warm(found, results["warm_trials"]))
    if any("without" in f for f in found.values()):
        parts.append(_ablation(found))
    return "\n\n".join(parts)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)]
    return "\n".join(lines)


def _main(found: Mapping[str, Any]) -> str:
    rows = []
    for name, f in found.items():
        one, two, goals = f["one"], f.get("two"), f["goals"] or (None, None)
        busy = statistics.median(s["wall"] / s["processor_seconds"] for s in one)
        rows.append(
            (
                name,
                _seconds(_median(one, "wall"), goals[0]),
                f"{busy:.2f}",
                _seconds(_median(two, "wall"), goals[1]) if two else "-",
                f"{_median(one, 'overhead'):.1%}",
                f"{_median(one, 'overhead_with_loading'):.1%}",
                f"{_median(one, 'ratio'):.3f}",
                _count(one, "near_trials"),
                _duration(one, "near_seconds"),
                f"{statistics.median(s['gflops'] or 0.0 for s in one):.0f}",
            )
        )
    head = [
        "",
        "wall",
        "wall / processor",
        "two processors",
        "search",
        "loading too",
        "best",
        "trials to 5 %",
        "wall to 5 %",
    ]
    return table([*head, "GFLOP/s"], rows)


def _beside_tvm(found: Mapping[str, Any]) -> str:
    rows = []
    for name, f in found.items():
        if "tvm" in f:
            seconds = _reached(f["tvm"])
            share = f"1/{f['tvm']['wall'] / seconds:.0f}" if seconds else "-"
            ratio = statistics.median(s["ratio"] for s in f["tvm"]["searches"])
            rows.append((name, f"{f['tvm']['wall']:.1f} s", _tvm_seconds(f["tvm"]), share, f"{ratio:.2f}"))
    return table(["", "TVM's search", "ours has its best after", "share", "TVM's best / ours"], rows)


def _warm(found: Mapping[str, Any], trials: int) -> str:
    rows = [
        (
            name,
            f"{_median(f['warm'], 'ratio'):.3f}",
            _count(f["warm"], "near_trials"),
            f"{_median(f['warm'], 'wall'):.1f} s",
        )
        for name, f in found.items()
        if "warm" in f
    ]
    return table(["", f"best after {trials}, warm-started", "trials to 5 %", "wall"], rows)


def _ablation(found: Mapping[str, Any]) -> str:
    with_parts = {name: f for name, f in found.items() if "without" in f}
    parts = list(dict.fromkeys(part for f in with_parts.values() for part in f["without"]))
    rows = []
    for name, f in with_parts.items():
        searches = [f["one"], *(f["without"][part] for part in parts)]
        rows.append((name, *(f"{_median(s, 'ratio'):.3f}, {_median(s, 'wall'):.1f} s" for s in searches)))
    return table(["best, wall", "whole", *(f"without {part}" for part in parts)], rows)


def _median(searches: Searches, key: str) -> float:
    return statistics.median(s[key] for s in searches)


def _count(searches: Searches, key: str) -> str:
    value = _median_of_some(searches, key)
    return "-" if value is None else f"{value:.0f}"


def _duration(searches: Searches, key: str) -> str:
    value = _median_of_some(searches, key)
    return "-" if value is None else f"{value:.1f} s"


def _median_of_some(searches: Searches, key: str) -> float | None:
    """The median where a search that never came so far is later than all; None where it is one of these."""
    values = sorted(float("inf") if s[key] is None else s[key] for s in searches)
    middle = statistics.median_high(values)
    return None if middle == float("inf") else middle


def _seconds(value: float, goal: float | None) -> str:
    return f"{value:.1f} s" if goal is None else f"{value:.1f} s (of {goal:g})"


def _reached(tvm: Mapping[str, Any]) -> float | None:
    return _median_of_some(tvm["searches"], "seconds")


def _tvm_seconds(tvm: Mapping[str, Any]) -> str:
    seconds = _reached(tvm)
    return "-" if seconds is None else f"{seconds:.1f} s"
