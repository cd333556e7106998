"""The search space: sketches with knobs, made by rules, and the schedule that needs no search."""

from .default import default_configs, default_schedule, default_schedules, estimated_cycles
from .feature_names import FEATURE_NAMES, FEATURE_SCHEMA
from .population import Population, SketchColumns
from .sketch import Constraint, SearchSpace, Sketch, features_of_schedule
from .space import space_of
from .user import KnobConstraint, SpaceError, SpaceFunction, user_space

__all__ = [
    "FEATURE_NAMES",
    "FEATURE_SCHEMA",
    "Constraint",
    "KnobConstraint",
    "Population",
    "SearchSpace",
    "Sketch",
    "SketchColumns",
    "SpaceError",
    "SpaceFunction",
    "default_configs",
    "default_schedule",
    "default_schedules",
    "estimated_cycles",
    "features_of_schedule",
    "space_of",
    "user_space",
]
