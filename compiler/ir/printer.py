"""PrimFuncs as text in Python syntax: loops, assignments, and an `if` for the instances that exist."""

from __future__ import annotations

from collections.abc import Sequence

from ..arith import Atom, Poly, substitute
from .expr import Binary, Buffer, Cast, Compare, Const, Expr, InBounds, IndexValue, Load, Select, Unary
from .func import PrimFunc
from .stmt import Block, For, LoopKind, Stmt

_INDENT = "    "
_INFIX = {
    "add": ("+", 4),
    "sub": ("-", 4),
    "mul": ("*", 5),
    "truediv": ("/", 5),
    "floordiv": ("//", 5),
    "floormod": ("%", 5),
    "and": ("&", 2),
    "xor": ("^", 1),
    "or": ("|", 0),
    "shl": ("<<", 3),
    "shr": (">>", 3),
}
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def script(func: PrimFunc, mark: Stmt | None = None, note: str = "") -> str:
    """The program; the header line of `mark` is underlined, with `note` behind it."""
    lines = [f"def {func.name}({', '.join(map(_parameter, func.params))}):"]
    for b in func.allocs:
        lines.append(f"{_INDENT}{b.name} = {b.scope}({_array(b)})")
    _body(func.body, 1, lines, mark, note)
    return "\n".join(lines) + "\n"


def loop_nest(body: Sequence[Stmt], mark: Stmt | None = None, note: str = "") -> str:
    """Statements without the function around them."""
    lines: list[str] = []
    _body(body, 0, lines, mark, note)
    return "\n".join(lines) + "\n"


def _parameter(b: Buffer) -> str:
    return f"{b.name}: {_array(b)}"


def _array(b: Buffer) -> str:
    return f"{b.dtype}[{', '.join(map(repr, b.shape))}]"


def _body(body: Sequence[Stmt], depth: int, lines: list[str], mark: Stmt | None, note: str) -> None:
    for s in body:
        at = len(lines)
        if type(s) is For:
            head = "range" if s.kind is LoopKind.SERIAL else s.kind.value
            extra = "".join(f", {k}={v!r}" for k, v in s.annotations)
            lines.append(f"{_INDENT * depth}for {s.var.name} in {head}({s.var.extent!r}{extra}):")
            _body(s.body, depth + 1, lines, mark, note)
        else:
            assert type(s) is Block
            _block(s, depth, lines)
        if s is mark:
            pad = len(lines[at]) - len(lines[at].lstrip())
            under = " " * pad + "^" * len(lines[at].strip())
            lines.insert(at + 1, f"{under} {note}".rstrip())


def _block(b: Block, depth: int, lines: list[str]) -> None:
    m = b.binding
    if b.init is not None:
        lines.append(f"{_INDENT * depth}with block({b.name!r}):")
        depth += 1
    if b.predicates:
        lines.append(f"{_INDENT * depth}if {' and '.join(map(condition, b.predicates))}:")
        depth += 1
    target = f"{b.buffer.name}[{_indices(b.bound_indices())}]"
    if b.init is not None:
        lines.append(f"{_INDENT * depth}with init():")
        lines.append(f"{_INDENT * (depth + 1)}{target} = {expr(b.init, m)}")
    lines.append(f"{_INDENT * depth}{target} {_assignment(b, m)}")


def _assignment(b: Block, m: dict[Atom, Poly]) -> str:
    v = b.value
    if type(v) is Binary and v.op == "add" and _is_self(v.a, b):
        return f"+= {expr(v.b, m)}"
    return f"= {expr(v, m)}"


def _is_self(e: Expr, b: Block) -> bool:
    return type(e) is Load and e.buffer is b.buffer and e.indices == b.indices


def condition(p: Poly) -> str:
    """`p < 0`, with what is subtracted brought to the other side."""
    left = Poly({m: c for m, c in p.terms.items() if c > 0})
    right = Poly({m: -c for m, c in p.terms.items() if c < 0})
    if left.const == 0:
        return f"0 < {right!r}"
    if left.const == 1:
        return f"{right!r} > 1"
    return f"{left!r} < {right!r}"


def _indices(indices: Sequence[Poly]) -> str:
    return ", ".join(map(repr, indices)) if indices else "()"


def expr(e: Expr, m: dict[Atom, Poly] | None = None, outer: int = -1) -> str:
    """One value, with iteration variables replaced by their bindings `m`."""
    at = (lambda p: substitute(p, m)) if m else (lambda p: p)
    match e:
        case Const(value, dtype):
            # NumPy's text of a float is the shortest that its dtype reads back to the same value.
            return str(dtype.numpy.type(value)) if dtype.is_float else str(value)
        case IndexValue(p, dtype):
            return f"{dtype}({at(p)!r})"
        case Load(buffer, indices):
            return f"{buffer.name}[{_indices([at(i) for i in indices])}]"
        case Binary(op, a, b):
            if op in _INFIX:
                sign, level = _INFIX[op]
                text = f"{expr(a, m, level)} {sign} {expr(b, m, level + 1)}"
                return f"({text})" if level < outer else text
            return f"{op}({expr(a, m)}, {expr(b, m)})"
        case Compare(op, a, b):
            return f"({expr(a, m, 9)} {_COMPARE[op]} {expr(b, m, 9)})"
        case Unary(op, a):
            return (
                f"-{expr(a, m, 9)}"
                if op == "neg"
                else f"{op}_({expr(a, m)})"
                if op == "not"
                else f"{op}({expr(a, m)})"
            )
        case InBounds(conditions):
            return "(" + " and ".join(condition(at(c)) for c in conditions) + ")" if conditions else "True"
        case Select(cond, a, b):
            return f"({expr(a, m)} if {expr(cond, m)} else {expr(b, m)})"
        case Cast(dtype, a):
            return f"{dtype}({expr(a, m)})"
