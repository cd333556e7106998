"""Words, strings and annotations of a printed program, from Python's syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .parse_indices import fail, shown

Annotations = tuple[tuple[str, str | int], ...]


def called(node: ast.expr) -> str:
    """The name of the function that is called; empty for anything else."""
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def string(node: ast.expr) -> str:
    """The text of a string."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        fail(f"expected a string, got {shown(node)}", node)
    return node.value


def annotated(keywords: Sequence[ast.keyword]) -> Annotations:
    """The annotations that keywords give: `hint=3`, or `**{"a.b": 3}`."""
    out: dict[str, str | int] = {}
    for k in keywords:
        pairs: list[tuple[ast.expr | None, str, ast.expr]] = []
        if k.arg is not None:
            pairs = [(None, k.arg, k.value)]
        elif isinstance(k.value, ast.Dict):
            for key, value in zip(k.value.keys, k.value.values, strict=True):
                if key is None:
                    fail("expected a string as the key of an annotation", value)
                pairs.append((key, string(key), value))
        else:
            fail(f"expected annotations such as hint=3, got {shown(k.value)}", k.value)
        for key_node, name, value in pairs:
            if name in out:
                fail(f"the annotation {name!r} is given twice", key_node or value)
            out[name] = _literal(value)
    return tuple(sorted(out.items()))


def _literal(node: ast.expr) -> str | int:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Constant(value=int(value)) if abs(value) < 2**53:
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))) if abs(value) < 2**53:
            return -value
    fail(f"expected a string or an integer below 2**53, got {shown(node)}", node)
