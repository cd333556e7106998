"""Index arithmetic: polynomials over loop variables, knobs and sizes, their bounds and regions."""

from .effort import TooHard, limited, spend
from .injective import is_injective
from .poly import Atom, Fn, IntoPoly, Knob, Monomial, Poly, Size, Var, poly, product
from .positive import is_positive, positive_atoms
from .reach import LARGEST, reach
from .region import ends, is_contiguous, region
from .simplify import (
    NotProvable,
    ceil_div,
    evaluate,
    floor_div,
    floor_mod,
    lower,
    maximum,
    minimum,
    not_negative,
    proven_negative,
    substitute,
    upper,
)

__all__ = [
    "LARGEST",
    "Atom",
    "Fn",
    "IntoPoly",
    "Knob",
    "Monomial",
    "NotProvable",
    "Poly",
    "Size",
    "TooHard",
    "Var",
    "ceil_div",
    "ends",
    "evaluate",
    "floor_div",
    "floor_mod",
    "is_contiguous",
    "is_injective",
    "is_positive",
    "limited",
    "lower",
    "maximum",
    "minimum",
    "not_negative",
    "poly",
    "positive_atoms",
    "product",
    "proven_negative",
    "reach",
    "region",
    "spend",
    "substitute",
    "upper",
]
