"""Values and indices as text, under the names that hold where they stand."""

from __future__ import annotations

from collections.abc import Sequence

from ..arith import Atom, Poly, Size, Var
from ..arith.spell import spelled
from .dtype import BOOL, DType
from .expr import Binary, Buffer, Cast, Compare, Const, Expr, InBounds, IndexValue, Load, Select, Unary
from .names import free
from .stmt import Block

INFIX = {
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
COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_TIGHTEST = 9


class Spelling:
    """What buffers and variables are called at one place of a program, and in which order they stand."""

    def __init__(self, *, ordered: bool = True) -> None:
        """ordered: like terms of an index stand in the order of their variables, not in that of the sum."""
        self._ordered = ordered
        self._buffers: dict[Buffer, str] = {}
        self._names: dict[Atom, str] = {}
        self._taken: frozenset[str] = frozenset()
        self._positions: dict[Atom, int] = {}

    def inside(self) -> Spelling:
        """The same names, to which others can be added."""
        inner = Spelling(ordered=self._ordered)
        inner._buffers = self._buffers
        inner._names = dict(self._names)
        inner._taken = self._taken
        inner._positions = dict(self._positions)
        return inner

    def declare_buffer(self, b: Buffer) -> None:
        self._buffers[b] = free(b.name, self._buffers.values())

    def declare_size(self, s: Size) -> None:
        self._names[s] = text = free(s.name, self._taken)
        self._taken |= {text}

    def declare(self, v: Var, name: str | None = None) -> None:
        """A variable, under a free name unless one is given."""
        text = free(v.name, self._taken) if name is None else name
        self._names[v] = text
        self._taken |= {text}
        self._positions[v] = len(self._positions)

    def alias(self, v: Var, other: Var) -> None:
        """`v` is another name of `other`."""
        self._names[v] = self._names[other]
        self._positions[v] = self._positions[other]

    def buffer(self, b: Buffer) -> str:
        return self._buffers.get(b, b.name)

    def name(self, a: Atom) -> str:
        return self._names.get(a) or repr(a)

    def index(self, p: Poly) -> str:
        return spelled(p, self.name, self._position if self._ordered else None)

    def _position(self, a: Atom) -> int:
        return self._positions.get(a, -1)

    def indices(self, indices: Sequence[Poly]) -> str:
        return ", ".join(map(self.index, indices)) if indices else "()"

    def condition(self, p: Poly) -> str:
        """`p < 0`, with what is subtracted brought to the other side."""
        left = Poly({m: c for m, c in p.terms.items() if c > 0})
        right = Poly({m: -c for m, c in p.terms.items() if c < 0})
        if left.const == 0:
            return f"0 < {self.index(right)}"
        if left.const == 1:
            return f"{self.index(right)} > 1"
        return f"{self.index(left)} < {self.index(right)}"

    def assignment(self, b: Block) -> str:
        """What stands right of the written element: `= value`, or `+= term`."""
        v = b.value
        if type(v) is Binary and v.op == "add" and _is_self(v.a, b):
            return f"+= {self.value(v.b, b.buffer.dtype)}"
        return f"= {self.value(v, b.buffer.dtype)}"

    def value(self, e: Expr, known: DType | None, outer: int = -1) -> str:
        """One value. known: the dtype that its place tells; a constant of that dtype needs to name none.
        outer: how tightly what stands around it binds."""
        match e:
            case Const():
                text = _constant(e)
                return text if e.dtype == known or e.dtype.is_bool else f"{e.dtype}({text})"
            case IndexValue(p, dtype):
                text = self.index(p)
                return f"{dtype}({text})" if p.vars() else f"{dtype}(index({text}))"
            case Load(buffer, indices):
                return f"{self.buffer(buffer)}[{self.indices(indices)}]"
            case Binary(op, a, b):
                inner = known or _told(e)
                if op in INFIX:
                    sign, level = INFIX[op]
                    text = f"{self.value(a, inner, level)} {sign} {self.value(b, inner, level + 1)}"
                    return f"({text})" if level < outer else text
                return f"{op}({self.value(a, inner)}, {self.value(b, inner)})"
            case Compare(op, a, b):
                inner = _told(a) or _told(b)
                left, right = self.value(a, inner, _TIGHTEST), self.value(b, inner, _TIGHTEST)
                return f"({left} {COMPARE[op]} {right})"
            case Unary("neg", a) if type(a) is not Const:
                return f"-{self.value(a, known, _TIGHTEST)}"
            case Unary(op, a):
                return f"{op}{'_' if op == 'not' else ''}({self.value(a, known)})"
            case InBounds(conditions):
                return f"({' and '.join(map(self.condition, conditions))})" if conditions else "in_bounds()"
            case Select(cond, a, b):
                inner = known or _told(e)
                return f"({self.value(a, inner)} if {self.value(cond, BOOL)} else {self.value(b, inner)})"
            case Cast(dtype, a):
                return f"{dtype}({self.value(a, _told(a))})"


def expr(e: Expr) -> str:
    """One value by itself, under the names that its parts bear."""
    return Spelling(ordered=False).value(e, e.dtype)


def _is_self(e: Expr, b: Block) -> bool:
    return type(e) is Load and e.buffer is b.buffer and e.indices == b.indices


def _constant(c: Const) -> str:
    # NumPy's text of a float is the shortest that its dtype reads back to the same value.
    if c.dtype.is_float:
        return str(c.dtype.numpy.type(c.value))
    return str(bool(c.value)) if c.dtype.is_bool else str(int(c.value))


def _told(e: Expr) -> DType | None:
    """The dtype that the text of `e` tells by itself; None for what is made of constants alone."""
    match e:
        case Const():
            return BOOL if e.dtype.is_bool else None
        case Binary(_, a, b) | Select(_, a, b):
            return _told(a) or _told(b)
        case Unary(_, a):
            return _told(a)
    return e.dtype
