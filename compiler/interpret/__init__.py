"""The reference: what a program must compute, and whether a kernel did."""

from .check import CheckResult, Expected, check
from .footprint import Footprint, footprint
from .inputs import poisoned, random_inputs
from .plain import plain_problem
from .reference import NotPlain, expected
from .scalar import run
from .scalars import OutOfBounds

__all__ = [
    "CheckResult",
    "Expected",
    "Footprint",
    "NotPlain",
    "OutOfBounds",
    "check",
    "expected",
    "footprint",
    "plain_problem",
    "poisoned",
    "random_inputs",
    "run",
]
