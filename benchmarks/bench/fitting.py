"""Coefficients of at least 0 that make sums of terms follow measured times, by ratio."""

from __future__ import annotations

from typing import Any

import numpy as np

Table = np.ndarray[Any, np.dtype[np.float64]]

#: How much a factor common to all configs of a workload counts: an estimate is there to rank configs of one.
COMMON = 0.1
#: How much it counts, for each coefficient, to leave it as it was: next to nothing where the times tell.
KEEP = 0.0002
STEPS = 3000
#: Draws of the second stage, and the logarithm of the ratio of two estimates that are still taken for alike.
DRAWS, ALIKE = 2500, 0.04
#: How much slower than the best, as a logarithm, a chosen config may be before it counts threefold.
BEARABLE = 0.3
#: How much it counts in the second stage to stay by the first one's result.
ANCHOR = 0.03


def fitted(table: Table, times: Table, groups: np.ndarray[Any, Any], before: Table) -> Table:
    """x > 0 that minimises the mean squares of log(table @ x) - log(times) within each group, plus COMMON of
    the square of its mean, plus KEEP of those of log(x / before).

    A config's weight is the root of the best time of its group over its own. table: shape (n, terms).
    """
    relative = table / times[:, None]
    members = [groups == g for g in dict.fromkeys(groups.tolist())]
    weight = np.empty(len(times))
    for m in members:
        weight[m] = np.sqrt(times[m].min() / times[m])
    start = np.log(np.maximum(before, 1e-3))
    z = start.copy()
    mean, square = np.zeros_like(z), np.zeros_like(z)
    # Adam (Kingma and Ba, 2015) on the logarithms, with steps that shrink to nothing.
    for step in range(1, STEPS + 1):
        x = np.exp(z)
        sums = np.maximum(relative @ x, 1e-12)
        off = np.log(sums)
        pull = np.empty_like(off)
        for m in members:
            total = weight[m].sum()
            middle = (weight[m] * off[m]).sum() / total
            pull[m] = weight[m] * (off[m] - (1 - COMMON) * middle) / total
        slope = (relative / sums[:, None]).T @ pull * x / len(members) + KEEP * (z - start)
        mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope * slope
        size = (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-12)
        z = z - 0.05 * (1 - step / STEPS) * size
    out: Table = np.exp(z)
    return out


def refined(table: Table, times: Table, groups: np.ndarray[Any, Any], start: Table) -> Table:
    """x > 0 near `start` under which the config with the least estimate of each group is fast: a fit by ratio
    spends itself on configs that nobody would choose.

    It minimises the mean over groups of the expected logarithm of the chosen config's time over the best,
    where configs of like estimates are chosen with like probability, by changing a few coefficients at a time
    at random; the same for the same arguments.
    """
    members = [np.flatnonzero(groups == g) for g in dict.fromkeys(groups.tolist())]
    lost = [np.log(times[m] / times[m].min()) for m in members]
    cost = [r + 2 * np.maximum(r - BEARABLE, 0) for r in lost]

    def regret(x: Table) -> float:
        total = 0.0
        for m, c in zip(members, cost, strict=True):
            e = np.log(np.maximum(table[m] @ x, 1e-12))
            weight = np.exp((e.min() - e) / ALIKE)
            total += float(weight @ c / weight.sum())
        return total / len(members) + ANCHOR * float(np.mean(np.log(x / start) ** 2))

    rng = np.random.default_rng(0)
    best, least = start.copy(), regret(start)
    for draw in range(DRAWS):
        some = rng.choice(len(best), size=min(len(best), int(rng.integers(1, 4))), replace=False)
        x = best.copy()
        x[some] *= np.exp(rng.normal(0, 0.7 * 0.6 ** (draw // 300), len(some)))
        now = regret(x)
        if now < least:
            best, least = x, now
    return best


def judged(estimates: Table, times: Table) -> tuple[float, float]:
    """The rank correlation (Spearman), and the time of the config with the least estimate over the best."""
    if len(times) < 2:
        return 1.0, 1.0
    a, b = (np.argsort(np.argsort(v)).astype(np.float64) for v in (estimates, times))
    a, b = a - a.mean(), b - b.mean()
    return float(a @ b / np.sqrt((a @ a) * (b @ b))), float(times[np.argmin(estimates)] / times.min())
