"""Index arithmetic: polynomials over loop variables and knobs, their bounds and regions."""

from .injective import is_injective
from .poly import Atom, Fn, IntoPoly, Knob, Monomial, Poly, Var, poly, product
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
    "is_contiguous",
    "is_injective",
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
