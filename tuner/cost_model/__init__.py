"""Cost models: how fast a candidate would be, from its features. Only this package knows xgboost."""

from __future__ import annotations

from importlib.util import find_spec

from .base import CostModel, Scores
from .corrected import Corrected
from .gaussian_process import GaussianProcess, Posterior
from .gradient_boosting import OBJECTIVES, Objective, XGBoost
from .kernel_ridge import KernelRidge
from .learner import Learner
from .training import ROWS, SchemaMismatch, TrainingSet, training_set

__all__ = [
    "MODELS",
    "OBJECTIVES",
    "ROWS",
    "Corrected",
    "CostModel",
    "GaussianProcess",
    "KernelRidge",
    "Learner",
    "Objective",
    "Posterior",
    "SchemaMismatch",
    "Scores",
    "TrainingSet",
    "XGBoost",
    "available_model",
    "available_process",
    "training_set",
]

MODELS = ("xgboost", "kernel ridge")
"""What `available_model` may come to."""


def available_model() -> CostModel:
    """XGBoost where it is installed, else a model that needs NumPy alone and says so in its name."""
    if find_spec("xgboost") is None:
        return KernelRidge(reason="xgboost is not installed")
    return XGBoost()


def available_process() -> bool:
    """Whether there is what GaussianProcess needs."""
    return find_spec("scipy") is not None
