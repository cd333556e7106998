"""Search strategies, by name."""

from __future__ import annotations

from importlib import import_module

from ..errors import UnknownStrategy
from .base import Point, SearchStrategy, View

__all__ = ["DEFAULT", "STRATEGIES", "Point", "SearchStrategy", "View", "load_strategy"]

STRATEGIES = {
    "annealing": "annealing:Annealing",
    "evolutionary": "evolutionary:Evolutionary",
    "grid": "grid:Grid",
    "guided": "guided:Guided",
    "local": "local:Local",
    "random": "random:Random",
}
"""Name -> module of this package and class, loaded on use."""

DEFAULT = "guided"
"""The one that mixes the others under a cost model."""


def load_strategy(name: str) -> SearchStrategy:
    """The strategy of that name with its default options. Raises UnknownStrategy, which lists the known."""
    if name not in STRATEGIES:
        raise UnknownStrategy(name, tuple(sorted(STRATEGIES)))
    module, _, member = STRATEGIES[name].partition(":")
    strategy: SearchStrategy = getattr(import_module(f".{module}", __name__), member)()
    return strategy
