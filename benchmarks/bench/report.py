"""Results as tables: Markdown, which reads in a terminal too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .measure import geometric_mean

Result = Mapping[str, Any]

PEERS = ("numpy", "torch", "torch packed", "onnxruntime", "tvm")


def tables(facts: Mapping[str, Any], results: Sequence[Result]) -> str:
    """The whole report: limits, a table for each number of threads, geometric means, notes."""
    parts = [heading(facts)]
    for threads in dict.fromkeys(r["threads"] for r in results):
        part = [r for r in results if r["threads"] == threads]
        parts += [f"{threads} thread{'s' if threads > 1 else ''}:", table(part), means(part)]
    notes = [f"- {r['workload']}, {r['threads']} thread(s): {n}" for r in results for n in r["notes"]]
    return "\n\n".join([*parts, *(["\n".join(notes)] if notes else [])]) + "\n"


def heading(facts: Mapping[str, Any]) -> str:
    """Machine, peers, limits."""
    lines = [
        f"{facts['machine']} ({facts['microarchitecture']}), {facts['target']}, commit {facts['commit']}."
    ]
    there = ", ".join(f"{n} {v}" for n, v in facts["peers"].items())
    lines.append(f"Peers: {there}; missing: {', '.join(facts['missing']) or 'none'}.")
    for threads, limits in facts["limits"].items():
        peaks = ", ".join(f"{n} {v / 1e9:.0f}" for n, v in limits["peaks"].items())
        lines.append(f"Peak, {threads} thread(s), GFLOP/s: {peaks}.")
        moved = ", ".join(
            f"{level} {b['read'] / 1e9:.0f}/{b['copy'] / 1e9:.0f}/{b['triad'] / 1e9:.0f}"
            for level, b in limits["bandwidth"].items()
        )
        lines.append(f"Bandwidth, {threads} thread(s), GB/s read/copy/triad: {moved}.")
    return "\n".join(lines)


def table(results: Sequence[Result]) -> str:
    """One row for each workload. Columns of peers and of the default are times over ours: above 1, ours is
    faster. `roofline`: the least time that peak and bandwidth allow over ours, and what sets it."""
    names = [n for n in PEERS if any(n in r["ratio"] for r in results)]
    beside = [n for n in ("round", "one thread") if any(n in r["ratio"] for r in results)]
    head = ["", "workload", "time", "GFLOP/s", "roofline", "default", *names, "best peer", *beside]
    lines = [_row(head), _row(["---"] * len(head))]
    for r in results:
        ours = r["ours"]
        limit = r["roofline"]
        cells = [
            r["workload"],
            r["title"] + (f" (x{r['count']})" if r["count"] > 1 else ""),
            duration(r["seconds"][ours]) + ("" if ours == "tuned" else " (default)"),
            f"{r['gflops'][ours]:.0f}" if r["gflops"][ours] >= 10 else f"{r['gflops'][ours]:.1f}",
            f"{limit['reached']:.0%} {limit['by']}" if limit else "-",
            _median(r, "default"),
            *(_median(r, n) for n in names),
            _interval(r, r["best_peer"]) if r["best_peer"] else "-",
            *(_beside(r, n) for n in beside),
        ]
        lines.append(_row(cells))
    return "\n".join(lines)


def means(results: Sequence[Result]) -> str:
    """Geometric means over the workloads of a table."""
    peers = [r["ratio"][r["best_peer"]]["median"] for r in results if r["best_peer"]]
    defaults = [r["ratio"]["default"]["median"] for r in results if "default" in r["ratio"]]
    limits = [r["roofline"]["reached"] for r in results if r["roofline"]]
    said = []
    if peers:
        said.append(
            f"best peer / ours {geometric_mean(peers):.2f} ({_workloads(peers)}, least {min(peers):.2f})"
        )
    if defaults:
        said.append(f"default / tuned {geometric_mean(defaults):.2f} (most {max(defaults):.2f})")
    if limits:
        said.append(f"of the roofline {geometric_mean(limits):.0%}")
    return f"Geometric means: {'; '.join(said) or 'none'}."


_UNITS = (("s", 1.0), ("ms", 1e3), ("us", 1e6))


def duration(seconds: float) -> str:
    """Three digits with a unit."""
    unit, scale = next((u for u in _UNITS if seconds * u[1] >= 1), _UNITS[-1])
    value = seconds * scale
    return f"{value:.{max(0, 2 - len(str(int(value))) + 1)}f} {unit}"


def _workloads(values: Sequence[float]) -> str:
    return f"{len(values)} workload{'s' if len(values) > 1 else ''}"


def _median(r: Result, name: str) -> str:
    return f"{r['ratio'][name]['median']:.2f}" if name in r["ratio"] else "-"


def _interval(r: Result, name: str) -> str:
    x = r["ratio"][name]
    return f"{name} {x['median']:.2f} [{x['low']:.2f}, {x['high']:.2f}]"


def _beside(r: Result, name: str) -> str:
    """Beside the next round size: time over ours, and GFLOP/s of ours over its. Beside one thread: time over
    ours, of calls in a row and of the first call after a rest."""
    if name not in r["ratio"]:
        return "-"
    ratio = r["ratio"][name]["median"]
    if name == "round":
        return f"time {ratio:.2f}, GFLOP/s {ratio * r['flops'] / r['round_flops']:.2f}"
    return f"{ratio:.2f} in a row, {r['rested']['ratio'][name]['median']:.2f} after a rest"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
