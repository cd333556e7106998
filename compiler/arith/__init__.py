"""Index arithmetic: polynomials over loop variables and knobs, their bounds and regions."""

from .poly import Atom, Fn, IntoPoly, Knob, Monomial, Poly, Var, poly, product
from .region import ends, region
from .simplify import (
    NotProvable,
    ceil_div,
    evaluate,
    floor_div,
    floor_mod,
    lower,
    maximum,
    minimum,
    proven_negative,
    substitute,
    upper,
)

__all__ = [
    "Atom",
    "Fn",
    "IntoPoly",
    "Knob",
    "Monomial",
    "NotProvable",
    "Poly",
    "Var",
    "ceil_div",
    "ends",
    "evaluate",
    "floor_div",
    "floor_mod",
    "lower",
    "maximum",
    "minimum",
    "poly",
    "product",
    "proven_negative",
    "region",
    "substitute",
    "upper",
]
