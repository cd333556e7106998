"""The steps that a trace may hold: the arguments of each, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ArgKind = Literal[
    "block",
    "loop",
    "loops",
    "factors",
    "int",
    "text",
    "scope",
    "order",
    "value",
    "target",
    "integers",
    "map",
    "number",
]
OutKind = Literal["block", "blocks", "loop", "loops", "knob", "knobs", "none"]


@dataclass(frozen=True, slots=True)
class Step:
    """One kind of step: argument name -> kind, the arguments that may be left out with their defaults, and
    the outputs."""

    args: dict[str, ArgKind]
    out: OutKind
    defaults: dict[str, object] | None = None


#: Names are those of the methods of Schedule.
STEPS: dict[str, Step] = {
    "get_block": Step({"block": "int"}, "block"),
    "get_blocks": Step({}, "blocks"),
    "get_loops": Step({"block": "block"}, "loops"),
    "get_producers": Step({"block": "block"}, "blocks"),
    "get_consumers": Step({"block": "block"}, "blocks"),
    "sample_categorical": Step({"candidates": "integers"}, "knob"),
    "sample_perfect_tile": Step(
        {"loop": "loop", "n": "int", "max_innermost_factor": "int"}, "knobs", {"max_innermost_factor": 16}
    ),
    "sample_compute_location": Step({"block": "block", "decision": "int"}, "loop"),
    "split": Step(
        {"loop": "loop", "factors": "factors", "overlap": "int", "tail": "text"},
        "loops",
        {"overlap": 0, "tail": "mask"},
    ),
    "loop_partition": Step({"loop": "loop", "points": "factors"}, "loops"),
    "fuse": Step({"loops": "loops"}, "loop"),
    "reorder": Step({"loops": "loops"}, "none"),
    "merge_loops": Step({"loops": "loops"}, "loop"),
    "add_unit_loop": Step({"at": "target"}, "loop"),
    "parallel": Step({"loop": "loop"}, "none"),
    "vectorize": Step({"loop": "loop"}, "none"),
    "unroll": Step({"loop": "loop"}, "none"),
    "bind": Step({"loop": "loop", "axis": "text"}, "none"),
    "annotate": Step({"at": "target", "key": "text", "value": "value"}, "none"),
    "unannotate": Step({"at": "target", "key": "text"}, "none"),
    "compute_at": Step({"block": "block", "loop": "loop"}, "loops"),
    "reverse_compute_at": Step({"block": "block", "loop": "loop"}, "loops"),
    "compute_ahead": Step({"block": "block"}, "none"),
    "compute_inline": Step({"block": "block"}, "none"),
    "reverse_compute_inline": Step({"block": "block"}, "none"),
    "cache_read": Step(
        {"block": "block", "index": "int", "scope": "scope", "order": "order", "accesses": "order"},
        "block",
        {"order": None, "accesses": None},
    ),
    "cache_write": Step({"block": "block", "index": "int", "scope": "scope"}, "block"),
    "set_scope": Step({"block": "block", "index": "int", "scope": "scope"}, "none"),
    "decompose_reduction": Step({"block": "block", "loop": "loop"}, "block"),
    "blockize": Step({"loop": "loop"}, "block"),
    "tensorize": Step({"at": "target", "intrinsic": "text"}, "none"),
    "reindex": Step({"block": "block", "access": "text", "index": "int"}, "block"),
    "pad_einsum": Step({"block": "block", "padding": "integers"}, "none"),
    "convert_read": Step({"block": "block", "index": "int", "dtype": "text"}, "block"),
    "flip_sign": Step({"block": "block", "index": "int"}, "blocks"),
    "rfactor": Step({"loop": "loop", "axis": "int"}, "block", {"axis": 0}),
    "storage_align": Step(
        {"block": "block", "index": "int", "axis": "int", "factor": "int", "offset": "int"}, "none"
    ),
    "transform_layout": Step(
        {"block": "block", "index": "int", "index_map": "map", "pad_value": "number"},
        "none",
        {"pad_value": None},
    ),
    "transform_block_layout": Step({"block": "block", "index_map": "map"}, "loops"),
}
