"""The loop-nest IR with blocks: immutable programs over buffers."""

from .bind import bind_sizes, sizes_from
from .dtype import BOOL, FLOAT32, FLOAT64, INT32, INT64, DType, TypeMismatch
from .errors import ScriptError, VerifyError
from .expr import (
    Binary,
    Buffer,
    Cast,
    Compare,
    Const,
    Expr,
    InBounds,
    IndexValue,
    Load,
    Scope,
    Select,
    Unary,
)
from .from_json import from_json
from .func import PrimFunc, flop_count
from .horizontal import combines_lanes
from .json import canonical_json, to_json, workload_key
from .limits import within_limits
from .module import IRModule, module_from_json, module_to_json, verify_module
from .parser import parse_module, parse_script
from .printer import loop_nest, script
from .span import Span, user_span
from .stmt import Block, For, IterKind, LoopKind, Stmt, nest
from .structural import structural_equal, structural_hash
from .verify import verify
from .visit import (
    buffers_read,
    children,
    guarded_loads,
    indices_of,
    loads,
    map_expr,
    map_loads,
    only_moves,
    rewrite,
    walk,
    walk_expr,
    widest_value,
)

__all__ = [
    "BOOL",
    "FLOAT32",
    "FLOAT64",
    "INT32",
    "INT64",
    "Binary",
    "Block",
    "Buffer",
    "Cast",
    "Compare",
    "Const",
    "DType",
    "Expr",
    "For",
    "IRModule",
    "InBounds",
    "IndexValue",
    "IterKind",
    "Load",
    "LoopKind",
    "PrimFunc",
    "Scope",
    "ScriptError",
    "Select",
    "Span",
    "Stmt",
    "TypeMismatch",
    "Unary",
    "VerifyError",
    "bind_sizes",
    "buffers_read",
    "canonical_json",
    "children",
    "combines_lanes",
    "flop_count",
    "from_json",
    "guarded_loads",
    "indices_of",
    "loads",
    "loop_nest",
    "map_expr",
    "map_loads",
    "module_from_json",
    "module_to_json",
    "nest",
    "only_moves",
    "parse_module",
    "parse_script",
    "rewrite",
    "script",
    "sizes_from",
    "structural_equal",
    "structural_hash",
    "to_json",
    "user_span",
    "verify",
    "verify_module",
    "walk",
    "walk_expr",
    "widest_value",
    "within_limits",
    "workload_key",
]
