"""Scheduling primitives: pure functions from a program to a program. Each checks, then rewrites, and
returns."""

from .cache import cache_read, cache_write, set_scope
from .compute_at import compute_at, compute_locations, reverse_compute_at
from .inline import compute_inline, reverse_compute_inline
from .kinds import bind, parallel, unroll, vectorize
from .loops import fuse, reorder
from .merge import merge_loops
from .notes import annotate_block, annotate_loop, unannotate_block, unannotate_loop
from .partition import Point, loop_partition
from .reduction import decompose_reduction
from .split import Factor, Tail, split
from .unit_loop import add_unit_loop

__all__ = [
    "Factor",
    "Point",
    "Tail",
    "add_unit_loop",
    "annotate_block",
    "annotate_loop",
    "bind",
    "cache_read",
    "cache_write",
    "compute_at",
    "compute_inline",
    "compute_locations",
    "decompose_reduction",
    "fuse",
    "loop_partition",
    "merge_loops",
    "parallel",
    "reorder",
    "reverse_compute_at",
    "reverse_compute_inline",
    "set_scope",
    "split",
    "unannotate_block",
    "unannotate_loop",
    "unroll",
    "vectorize",
]
