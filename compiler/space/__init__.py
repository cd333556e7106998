"""The search space: sketches with knobs, made by rules, and the schedule that needs no search."""

from .default import default_configs, default_schedule
from .features import FEATURE_NAMES, FEATURE_SCHEMA
from .population import Population, SketchColumns
from .sketch import Constraint, SearchSpace, Sketch
from .space import space_of

__all__ = [
    "FEATURE_NAMES",
    "FEATURE_SCHEMA",
    "Constraint",
    "Population",
    "SearchSpace",
    "Sketch",
    "SketchColumns",
    "default_configs",
    "default_schedule",
    "space_of",
]
