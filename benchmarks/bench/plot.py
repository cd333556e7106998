"""A roofline plot as SVG: operations a second over operations a byte, both logarithmic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

WIDTH, HEIGHT = 900, 560
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 40, 50
_COLOURS = {"L1": "#3b76af", "L2": "#519e3e", "L3": "#ef8636", "memory": "#c53a32"}


class _Axes:
    """From (operations a byte, GFLOP/s) to places on the page."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float]) -> None:
        self.x, self.y = x, y

    def across(self, v: float) -> float:
        low, high = map(math.log10, self.x)
        return LEFT + (math.log10(v) - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def up(self, v: float) -> float:
        low, high = map(math.log10, self.y)
        return HEIGHT - BOTTOM - (math.log10(v) - low) / (high - low) * (HEIGHT - TOP - BOTTOM)


def roofline(facts: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> str:
    """One point for each workload that has a roofline, coloured by the level that its working set lives in,
    with a line up to its own bound; the roofs of peak and of each level's copy bandwidth."""
    shown = [r for r in results if r["roofline"]]
    limits = facts["limits"][str(shown[0]["threads"] if shown else 1)]
    peaks = {n: v / 1e9 for n, v in limits["peaks"].items()}
    axes = _axes(shown, peaks)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(LEFT, 20, f"{facts['machine']}, {facts['target'].split(' -math')[0]}", size=13),
        *_grid(axes),
    ]
    for level, b in limits["bandwidth"].items():
        parts += _roof(axes, level, b["copy"] / 1e9, max(peaks.values()))
    for name, p in peaks.items():
        if name != "float16" and p <= axes.y[1]:
            y = axes.up(p)
            parts.append(_line(LEFT, y, WIDTH - RIGHT, y, "#555", 1.5))
            parts.append(_text(WIDTH - RIGHT - 4, y - 4, f"{name} {p:.0f} GFLOP/s", anchor="end"))
    for r in shown:
        parts += _point(axes, r)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _axes(shown: Sequence[Mapping[str, Any]], peaks: Mapping[str, float]) -> _Axes:
    xs = [r["intensity"] for r in shown] or [1.0]
    ys = [r["gflops"][r["ours"]] for r in shown] or [1.0]
    top = max([peaks["float32"], *ys]) * 1.5
    low = 10 ** math.floor(math.log10(min(0.25, *xs)))
    return _Axes((low, 10 ** math.ceil(math.log10(max(100.0, *xs)))), (min(min(ys) / 2, top / 100), top))


def _grid(axes: _Axes) -> list[str]:
    out = []
    for (low, high), place, vertical in ((axes.x, axes.across, True), (axes.y, axes.up, False)):
        for e in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1):
            at, label = place(10.0**e), f"{10.0**e:g}"
            if vertical:
                out.append(_line(at, TOP, at, HEIGHT - BOTTOM, "#ddd", 1))
                out.append(_text(at, HEIGHT - BOTTOM + 16, label, anchor="middle"))
            else:
                out.append(_line(LEFT, at, WIDTH - RIGHT, at, "#ddd", 1))
                out.append(_text(LEFT - 6, at + 4, label, anchor="end"))
    out.append(_text(WIDTH / 2, HEIGHT - 12, "operations / byte", anchor="middle"))
    out.append(_text(LEFT - 50, TOP - 8, "GFLOP/s"))
    return out


def _roof(axes: _Axes, level: str, rate: float, peak: float) -> list[str]:
    """The slope of a level: rate times intensity, from the left or the lower edge up to the peak."""
    start = max(axes.x[0], axes.y[0] / rate)
    end = min(axes.x[1], min(peak, axes.y[1]) / rate)
    if end <= start:
        return []
    ends = [(axes.across(v), axes.up(v * rate)) for v in (start, end)]
    return [
        _line(*ends[0], *ends[1], _COLOURS.get(level, "#888"), 1.5),
        _text(ends[0][0] + 4, ends[0][1] - 4, f"{level} {rate:.0f} GB/s", fill=_COLOURS.get(level, "#888")),
    ]


def _point(axes: _Axes, r: Mapping[str, Any]) -> list[str]:
    limit = r["roofline"]
    x, y = axes.across(r["intensity"]), axes.up(r["gflops"][r["ours"]])
    roof = axes.up(min(axes.y[1], r["flops"] / limit["seconds"] / 1e9))
    colour = _COLOURS.get(limit["level"], "#888")
    title = escape(f"{r['workload']}: {r['title']}, {limit['reached']:.0%} of its roofline")
    return [
        _line(x, y, x, roof, colour, 0.7),
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"><title>{title}</title></circle>',
        _text(x + 6, y + 4, r["workload"]),
    ]


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
        f'stroke-width="{width}"/>'
    )


def _text(x: float, y: float, text: str, anchor: str = "start", size: int = 11, fill: str = "#222") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{fill}">'
        f"{escape(text)}</text>"
    )
