"""How a search went, in words: what its cost model was worth, and where its time went."""

from __future__ import annotations

from ..views import ModelView, TimeView


def model_line(model: ModelView) -> str:
    """`rank correlation +0.61, 74% of pairs in order, …`; says so where the model was not trusted."""
    if not model.trials:
        return "nothing was predicted"
    parts = [f"rank correlation {_signed(model.rank_correlation)}"]
    if model.pairwise_accuracy is not None:
        parts.append(f"{model.pairwise_accuracy:.0%} of pairs in order")
    if model.top_recall is not None:
        parts.append(f"{model.top_recall:.0%} of the fastest quarter foreseen")
    line = f"{', '.join(parts)}; {model.trials} trials predicted ahead"
    if not model.distrusted_rounds:
        return line
    since = "not trusted" if not model.trusted else "trusted again"
    return f"{line}; {since} (worse than chance after {_rounds(model.distrusted_rounds)})"


def time_line(time: TimeView) -> str:
    """`build 4.1 s, run 3.2 s, propose 0.6 s, …`, the most first; what is below 5 ms is left out."""
    spent = sorted(time.model_dump().items(), key=lambda item: -item[1])
    return ", ".join(f"{part} {seconds:.2f} s" for part, seconds in spent if seconds >= 0.005) or "no time"


def _signed(value: float | None) -> str:
    return "unknown" if value is None else f"{value:+.2f}"


def _rounds(count: int) -> str:
    return "1 round" if count == 1 else f"{count} rounds"
