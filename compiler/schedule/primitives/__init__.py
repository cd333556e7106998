"""Scheduling primitives: pure functions from a program to a program. Each checks, then rewrites, and
returns."""

from .ahead import compute_ahead
from .block_layout import transform_block_layout
from .blockize import blockize
from .cache import cache_read, cache_write, set_scope
from .compute_at import compute_at, compute_locations
from .convert import convert_read
from .flip_sign import flip_sign
from .inline import compute_inline, reverse_compute_inline
from .kinds import bind, parallel, unroll, vectorize
from .layout import storage_align, transform_layout
from .loops import fuse, reorder
from .merge import merge_loops
from .notes import annotate_block, annotate_loop, unannotate_block, unannotate_loop
from .pad_einsum import pad_einsum
from .partition import Point, loop_partition
from .reduction import decompose_reduction
from .reindex import reindex
from .reverse_compute_at import reverse_compute_at
from .rfactor import rfactor
from .split import Factor, Tail, split
from .tensorize import tensorize
from .unit_loop import add_unit_loop

__all__ = [
    "Factor",
    "Point",
    "Tail",
    "add_unit_loop",
    "annotate_block",
    "annotate_loop",
    "bind",
    "blockize",
    "cache_read",
    "cache_write",
    "compute_ahead",
    "compute_at",
    "compute_inline",
    "compute_locations",
    "convert_read",
    "decompose_reduction",
    "flip_sign",
    "fuse",
    "loop_partition",
    "merge_loops",
    "pad_einsum",
    "parallel",
    "reindex",
    "reorder",
    "reverse_compute_at",
    "reverse_compute_inline",
    "rfactor",
    "set_scope",
    "split",
    "storage_align",
    "tensorize",
    "transform_block_layout",
    "transform_layout",
    "unannotate_block",
    "unannotate_loop",
    "unroll",
    "vectorize",
]
