"""Scheduling primitives: pure functions from a program to a program. Each checks, then rewrites, and
returns."""

from .block_layout import transform_block_layout
from .blockize import blockize
from .cache import cache_read, cache_write, set_scope
from .compute_at import compute_at, compute_locations, reverse_compute_at
from .inline import compute_inline, reverse_compute_inline
from .kinds import annotate_block, annotate_loop, parallel, unroll, vectorize
from .layout import storage_align, transform_layout
from .loops import Factor, fuse, reorder, split
from .pad_einsum import pad_einsum
from .reduction import decompose_reduction
from .reindex import reindex
from .rfactor import rfactor
from .tensorize import tensorize

__all__ = [
    "Factor",
    "annotate_block",
    "annotate_loop",
    "blockize",
    "cache_read",
    "cache_write",
    "compute_at",
    "compute_inline",
    "compute_locations",
    "decompose_reduction",
    "fuse",
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
    "unroll",
    "vectorize",
]
