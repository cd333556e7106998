"""Scheduling primitives: pure functions from a program to a program. Each checks, then rewrites, and
returns."""

from .cache import cache_read, cache_write, set_scope
from .compute_at import compute_at, compute_locations, reverse_compute_at
from .inline import compute_inline, reverse_compute_inline
from .kinds import annotate_block, annotate_loop, parallel, unroll, vectorize
from .loops import Factor, fuse, reorder, split
from .reduction import decompose_reduction

__all__ = [
    "Factor",
    "annotate_block",
    "annotate_loop",
    "cache_read",
    "cache_write",
    "compute_at",
    "compute_inline",
    "compute_locations",
    "decompose_reduction",
    "fuse",
    "parallel",
    "reorder",
    "reverse_compute_at",
    "reverse_compute_inline",
    "set_scope",
    "split",
    "unroll",
    "vectorize",
]
