"""The columns of features, the same for every workload and structure.

At each of LEVELS loop levels, counted from the innermost, while the loops up to it run (beyond the outermost:
as there):
- extent: of the loop itself (beyond the outermost: 1); elements, lines: what an access touches, as elements
  and as cache lines; bytes: the lines of all accesses; conflicting bytes: those as the sets of a first-level
  cache feel them; pages; intensity: computed points for each byte.
- reuse distance: of an access that the loop does not move, the bytes that one of its turns touches, after
  which the same elements are used again; else, or where there is one turn, 0.

Accesses are the write, then the reads in order, SLOTS of them. Once for the block: trips, unrolled (copies of
the body), lanes, vectors (trips for all lanes at once), accumulators, registers (vectors of results and of
what one step reads), inner loads, those of them that lie across lines, lane stride (see stride_class),
stored lanes, executed (points with those of padding), guarded, operations, the extents with padding, work
and strides of copies, and the number of the sketch.
"""

from __future__ import annotations

#: Raised when a column changes its meaning: rows of another schema are not mixed.
FEATURE_SCHEMA = 5
LEVELS = 14
SLOTS = 3
COPIES = 2
SPATIAL = 3

FEATURE_NAMES: tuple[str, ...] = (
    *(
        f"{name}.{level}"
        for level in range(LEVELS)
        for name in (
            "extent",
            *(f"{what}.{slot}" for slot in range(SLOTS) for what in ("elements", "lines")),
            "bytes",
            "conflicting bytes",
            "pages",
            "intensity",
            *(f"reuse distance.{slot}" for slot in range(SLOTS)),
        )
    ),
    "trips",
    "unrolled",
    "lanes",
    "vectors",
    "accumulators",
    "registers",
    "inner loads",
    "loads across lines",
    *(f"lane stride.{slot}" for slot in range(SLOTS)),
    "stored lanes",
    "executed",
    "guarded",
    "operations",
    *(f"padded.{d}" for d in range(SPATIAL)),
    *(f"{what}.{n}" for n in range(COPIES) for what in ("copy work", "copy strided")),
    "sketch",
)
