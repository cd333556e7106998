"""How long calls took, and how many there were."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Summary:
    """`p50`, `p99` and `worst` in milliseconds."""

    calls: int
    per_second: float
    p50: float
    p99: float
    worst: float

    @classmethod
    def of(cls, seconds: Iterable[float], over: float) -> Summary:
        """Of the seconds that calls took, made in `over` seconds."""
        ordered = sorted(seconds)
        if not ordered:
            return cls(0, 0.0, 0.0, 0.0, 0.0)
        at = (_quantile(ordered, q) * 1e3 for q in (0.5, 0.99, 1.0))
        return cls(len(ordered), len(ordered) / over, *at)


def table(rows: Mapping[str, Summary]) -> str:
    lines = [f"{'call':<14}{'calls':>9}{'a second':>10}{'p50 ms':>9}{'p99 ms':>9}{'worst ms':>10}"]
    for name, row in rows.items():
        lines.append(
            f"{name:<14}{row.calls:>9}{row.per_second:>10.1f}{row.p50:>9.2f}{row.p99:>9.2f}{row.worst:>10.1f}"
        )
    return "\n".join(lines)


def _quantile(ordered: list[float], q: float) -> float:
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]
