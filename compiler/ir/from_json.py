"""Programs read from JSON that may come from anywhere: every mistake is a VerifyError with a JSON pointer."""

from __future__ import annotations

from ..arith import (
    NotProvable,
    Poly,
    Size,
    Var,
    ceil_div,
    floor_div,
    lower,
    maximum,
    minimum,
    poly,
    proven_negative,
)
from .dtype import DType, TypeMismatch
from .errors import VerifyError
from .expr import (
    BINARY_OPS,
    COMPARE_OPS,
    SCOPES,
    UNARY_OPS,
    Binary,
    Buffer,
    Cast,
    Compare,
    Expr,
    InBounds,
    IndexValue,
    Load,
    Select,
    Unary,
)
from .func import PrimFunc, fresh
from .json import FORMAT
from .json_values import Json, array, fields, immediate, integer, same_dtype, typed
from .limits import MAX_DEPTH, MAX_FACTORS, MAX_NODES, MAX_TERMS, within_effort
from .names import NAME, is_name
from .stmt import Block, For, IterKind, LoopKind, Stmt
from .verify import verify


def from_json(data: Json, *, at: str = "") -> PrimFunc:
    """The PrimFunc, verified (see `verify`). `at` is the pointer of `data` in a larger document."""
    with within_effort(at):
        func = _Reader().func(data, at)
        verify(func, at)
    return func


class _Reader:
    def __init__(self) -> None:
        self.vars: list[Var] = []
        self.sizes: list[Size] = []
        self.buffers: list[Buffer] = []
        self.blocks: set[str] = set()
        self.nodes = 0

    def count(self, at: str, depth: int) -> None:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise VerifyError(f"more than {MAX_NODES} nodes", at)
        if depth > MAX_DEPTH:
            raise VerifyError(f"nested deeper than {MAX_DEPTH}", at)

    def name(self, data: dict[str, Json], default: str, at: str) -> str:
        name = data.get("name", default)
        if not is_name(name):
            raise VerifyError(f"{NAME}, got {name!r}", f"{at}/name")
        assert isinstance(name, str)
        return name

    def func(self, data: Json, at: str) -> PrimFunc:
        d = fields(data, at, {"tilewright", "params", "body"}, {"name", "allocs", "sizes"})
        if type(d["tilewright"]) is not int or d["tilewright"] != FORMAT:
            raise VerifyError(
                f"format {d['tilewright']!r} is not known; this program reads {FORMAT}", f"{at}/tilewright"
            )
        if "sizes" in d and not array(d["sizes"], f"{at}/sizes"):
            raise VerifyError("a program without sizes leaves the field out", f"{at}/sizes")
        for i, x in enumerate(d.get("sizes", ())):
            here = f"{at}/sizes/{i}"
            self.count(here, 0)
            self.sizes.append(Size(self.name(fields(x, here, set(), {"name"}), f"s{i}", here)))
        params = [
            self.buffer(b, f"{at}/params/{i}", "p") for i, b in enumerate(array(d["params"], f"{at}/params"))
        ]
        allocs = [
            self.buffer(b, f"{at}/allocs/{i}", "t")
            for i, b in enumerate(array(d.get("allocs", []), f"{at}/allocs"))
        ]
        body = self.body(d["body"], f"{at}/body", 1)
        func = PrimFunc(self.name(d, "main", at), tuple(params), tuple(allocs), body)
        if func.sizes != tuple(self.sizes):
            expected = "in the order in which they first are a dimension of a parameter by themselves"
            raise VerifyError(f"the sizes are listed {expected}, each of them once", f"{at}/sizes")
        return func

    def buffer(self, data: Json, at: str, prefix: str) -> Buffer:
        d = fields(data, at, {"shape", "dtype"}, {"name", "scope", "constant"})
        shape = tuple(
            self.poly(p, f"{at}/shape/{i}", 0) for i, p in enumerate(array(d["shape"], f"{at}/shape"))
        )
        scope = d.get("scope", "global")
        if scope not in SCOPES:
            raise VerifyError(f"unknown scope {scope!r}; known: {', '.join(SCOPES)}", f"{at}/scope")
        if d.get("constant", True) is not True:
            raise VerifyError(f"'constant' is true or left out, got {d['constant']!r}", f"{at}/constant")
        for i, extent in enumerate(shape):
            self.extent(extent, f"{at}/shape/{i}")
        b = Buffer(
            self.name(d, f"{prefix}{len(self.buffers)}", at),
            shape,
            self.dtype(d["dtype"], f"{at}/dtype"),
            scope,
            "constant" in d,
        )
        self.buffers.append(b)
        return b

    def dtype(self, data: Json, at: str) -> DType:
        try:
            return DType.scalar(data if isinstance(data, str) else repr(data))
        except TypeMismatch as e:
            raise VerifyError(str(e), at) from None

    def var(self, data: Json, at: str, extra: set[str], ahead: int = 0) -> Var:
        d = fields(data, at, {"extent"}, {"name"} | extra)
        extent = self.poly(d["extent"], f"{at}/extent", 0)
        self.extent(extent, f"{at}/extent")
        return Var(self.name(d, f"v{len(self.vars) + ahead}", at), extent)

    def extent(self, extent: Poly, at: str) -> None:
        """An integer of at least 1, or an expression over sizes that is never below 0."""
        if extent.const is not None and extent.const < 1:
            raise VerifyError(f"an extent must be at least 1, got {extent!r}", at)
        if extent.vars() or not proven_negative(-lower(extent) - 1):
            raise VerifyError(f"an extent of sizes must be at least 0 for all of them, got {extent!r}", at)

    def body(self, data: Json, at: str, depth: int) -> tuple[Stmt, ...]:
        items = array(data, at)
        if not items:
            raise VerifyError("a body must hold at least one statement", at)
        return tuple(self.stmt(s, f"{at}/{i}", depth) for i, s in enumerate(items))

    def annotations(self, data: dict[str, Json], at: str) -> tuple[tuple[str, str | int], ...]:
        d = data.get("annotations", {})
        if not isinstance(d, dict) or not all(isinstance(v, str | int) for v in d.values()):
            raise VerifyError("annotations are an object of strings and integers", f"{at}/annotations")
        return tuple(sorted(d.items()))

    def stmt(self, data: Json, at: str, depth: int) -> Stmt:
        self.count(at, depth)
        if isinstance(data, dict) and "for" in data:
            d = fields(data, at, {"for", "body"}, {"kind", "annotations"})
            v = self.var(d["for"], f"{at}/for", set())
            self.vars.append(v)
            if d.get("kind", "serial") not in list(LoopKind):
                raise VerifyError(
                    f"unknown loop kind {d['kind']!r}; known: {', '.join(LoopKind)}", f"{at}/kind"
                )
            return For(
                v,
                self.body(d["body"], f"{at}/body", depth + 1),
                LoopKind(d.get("kind", "serial")),
                self.annotations(d, at),
            )
        d = fields(data, at, {"block"}, {"annotations"})
        return self.block(d["block"], f"{at}/block", self.annotations(d, at), depth)

    def block(self, data: Json, at: str, annotations: tuple[tuple[str, str | int], ...], depth: int) -> Block:
        d = fields(data, at, {"iters", "buffer", "indices", "value"}, {"name", "init", "predicates"})
        iters = array(d["iters"], f"{at}/iters")
        binds, kinds, declared = [], [], []
        predicates = [
            self.poly(p, f"{at}/predicates/{i}", 0)
            for i, p in enumerate(array(d.get("predicates", []), f"{at}/predicates"))
        ]
        for i, it in enumerate(iters):
            here = f"{at}/iters/{i}"
            v = self.var(it, here, {"bind", "kind"}, ahead=i)
            if "bind" not in it:
                raise VerifyError("the field 'bind' is missing", here)
            if it.get("kind", "spatial") not in list(IterKind):
                raise VerifyError(
                    f"unknown kind {it['kind']!r}; known: {', '.join(IterKind)}", f"{here}/kind"
                )
            binds.append(self.poly(it["bind"], f"{here}/bind", 0))
            kinds.append(IterKind(it.get("kind", "spatial")))
            declared.append(v)
        self.vars.extend(declared)
        indices = tuple(
            self.poly(p, f"{at}/indices/{i}", 0) for i, p in enumerate(array(d["indices"], f"{at}/indices"))
        )
        init = self.expr(d["init"], f"{at}/init", depth) if "init" in d else None
        buffer = self.buffer_of(d["buffer"], f"{at}/buffer")
        name = self.name(d, fresh(buffer.name, self.blocks), at)
        self.blocks.add(name)
        return Block(
            name,
            tuple(declared),
            tuple(kinds),
            tuple(binds),
            buffer,
            indices,
            self.expr(d["value"], f"{at}/value", depth),
            init,
            tuple(predicates),
            annotations,
        )

    def buffer_of(self, data: Json, at: str) -> Buffer:
        n = integer(data, at)
        if not 0 <= n < len(self.buffers):
            raise VerifyError(f"there is no buffer {n}; there are {len(self.buffers)}", at)
        return self.buffers[n]

    def poly(self, data: Json, at: str, depth: int) -> Poly:
        self.count(at, depth)
        if type(data) is int:
            return poly(integer(data, at))
        total = poly(0)
        if len(array(data, at)) > MAX_TERMS:
            raise VerifyError(f"an index has at most {MAX_TERMS} terms, got {len(data)}", at)
        for i, term in enumerate(data):
            here = f"{at}/{i}"
            t = array(term, here)
            if not t:
                raise VerifyError("a term is a coefficient and its atoms", here)
            if len(t) > 1 + MAX_FACTORS:
                raise VerifyError(f"a term has at most {MAX_FACTORS} factors, got {len(t) - 1}", here)
            product = poly(integer(t[0], f"{here}/0"))
            for j, a in enumerate(t[1:]):
                # An atom that simplifies to a sum multiplies what is there.
                product = _bounded(product * self.atom(a, f"{here}/{j + 1}", depth + 1), here)
            total = _bounded(total + product, at)
        return total

    def atom(self, data: Json, at: str, depth: int) -> Poly:
        if type(data) is int:
            if not 0 <= data < len(self.vars):
                raise VerifyError(
                    f"there is no variable {data} here; {len(self.vars)} are declared before", at
                )
            return poly(self.vars[data])
        d = array(data, at)
        if d and d[0] == "size":
            if len(d) != 2:
                raise VerifyError("a size is written ['size', number]", at)
            n = integer(d[1], f"{at}/1")
            if not 0 <= n < len(self.sizes):
                raise VerifyError(f"there is no size {n}; there are {len(self.sizes)}", f"{at}/1")
            return poly(self.sizes[n])
        makers = {"floordiv": floor_div, "ceildiv": ceil_div, "min": minimum, "max": maximum}
        if len(d) != 3 or not isinstance(d[0], str) or d[0] not in makers:
            raise VerifyError(
                f"an atom is a variable's number, ['size', number] or [{' | '.join(makers)}, a, b]", at
            )
        a, b = self.poly(d[1], f"{at}/1", depth + 1), self.poly(d[2], f"{at}/2", depth + 1)
        known = b.const != 0 and not b.vars() and proven_negative(-b - 1)
        if d[0] in ("floordiv", "ceildiv") and not known:
            raise VerifyError("the divisor must be a positive constant, or one of sizes", f"{at}/2")
        if d[0] == "ceildiv" and b.const is None and not proven_negative(-lower(a) - 1):
            raise VerifyError(f"cannot prove that {a!r} is not negative in a ceiling division by {b!r}", at)
        try:
            return makers[d[0]](a, b)
        except NotProvable as e:
            raise VerifyError(str(e), at) from None

    def expr(self, data: Json, at: str, depth: int) -> Expr:
        self.count(at, depth)
        d = array(data, at)
        op = d[0] if d and isinstance(d[0], str) else None
        sizes = {
            "const": 3,
            "index": 3,
            "cast": 3,
            "select": 4,
            **dict.fromkeys(UNARY_OPS, 2),
            **dict.fromkeys(BINARY_OPS + COMPARE_OPS, 3),
        }
        if op not in sizes and op not in ("load", "in_bounds"):
            raise VerifyError(
                f"unknown operation {op!r}; known: {', '.join(sorted([*sizes, 'load', 'in_bounds']))}",
                f"{at}/0",
            )
        if op in sizes and len(d) != sizes[op]:
            raise VerifyError(f"{op!r} takes {sizes[op] - 1} operands, got {len(d) - 1}", at)
        try:
            return self.node(op or "", d, at, depth + 1)
        except TypeMismatch as e:
            raise VerifyError(str(e), at) from None

    def node(self, op: str, d: list[Json], at: str, depth: int) -> Expr:
        if op == "const":
            return immediate(d[2], self.dtype(d[1], f"{at}/1"), f"{at}/2")
        if op == "index":
            dtype = self.dtype(d[1], f"{at}/1")
            if dtype.is_bool:
                raise VerifyError("an index is not a bool", f"{at}/1")
            return IndexValue(self.poly(d[2], f"{at}/2", depth), dtype)
        if op == "load":
            if len(d) < 2:
                raise VerifyError("a load names its buffer", at)
            return Load(
                self.buffer_of(d[1], f"{at}/1"),
                tuple(self.poly(p, f"{at}/{i + 2}", depth) for i, p in enumerate(d[2:])),
            )
        if op == "in_bounds":
            return InBounds(tuple(self.poly(p, f"{at}/{i + 1}", depth) for i, p in enumerate(d[1:])))
        if op == "cast":
            return Cast(self.dtype(d[1], f"{at}/1"), self.expr(d[2], f"{at}/2", depth))
        args = [self.expr(x, f"{at}/{i + 1}", depth) for i, x in enumerate(d[1:])]
        if op == "select":
            if not args[0].dtype.is_bool:
                raise VerifyError(f"a condition must be a bool, got {args[0].dtype}", f"{at}/1")
            return same_dtype(Select(args[0], args[1], args[2]), args[1:], at)
        if op in UNARY_OPS:
            return typed(op, Unary(op, args[0]), at)  # type: ignore[arg-type]
        if op in COMPARE_OPS:
            return typed(op, same_dtype(Compare(op, args[0], args[1]), args, at), at)  # type: ignore[arg-type]
        return typed(op, same_dtype(Binary(op, args[0], args[1]), args, at), at)  # type: ignore[arg-type]


def _bounded(p: Poly, at: str) -> Poly:
    if len(p.terms) > MAX_TERMS:
        raise VerifyError(f"an index has at most {MAX_TERMS} terms, got {len(p.terms)}", at)
    if any(len(m) > MAX_FACTORS for m in p.terms):
        raise VerifyError(f"a term has at most {MAX_FACTORS} factors", at)
    return p
