"""The printed form read back: `parse_script(script(f))` is `f` up to names, and prints as `f` does.

The text is read with Python's `ast` and nothing of it is run. It may come from anywhere: every mistake is a
ScriptError that names the line, the column and what was expected there.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from ..arith import Poly, Size, Var, lower, poly, proven_negative
from .dtype import DType, TypeMismatch
from .errors import ScriptError
from .expr import SCOPES, Binary, Buffer, Expr, Load
from .func import PrimFunc
from .limits import MAX_NODES
from .module import IRModule, verify_module
from .names import NAME, is_name
from .parse_indices import fail, shown
from .parse_values import Values
from .parse_words import Annotations, annotated, called, string
from .rules import refused
from .stmt import Block, For, IterKind, LoopKind, Stmt
from .trivial import extent_of, loop_kinds
from .verify import verify

#: Of a text, in characters; the largest real programs have some thousands.
MAX_TEXT = 1_000_000
_KINDS = {"range" if k is LoopKind.SERIAL else k.value: k for k in LoopKind}


def parse_script(text: str, *, check: bool = True) -> PrimFunc:
    """The one program in `text`, verified unless `check` is False: then the text is trusted to be a printed
    program (what passes make of one may run past its buffers on purpose).

    Raises ScriptError with line and column for what is no program, VerifyError for one that may not be run.
    """
    functions = _functions(text)
    if len(functions) != 1:
        raise ScriptError(f"expected one program, found {len(functions)}; parse_module reads several", 1, 1)
    func = _read(functions[0], trusted=not check)
    if check:
        verify(func)
    return func


def parse_module(text: str) -> IRModule:
    """All programs in `text` by name, each verified. Raises as `parse_script` does, and for two of one
    name."""
    functions = _functions(text)
    if not functions:
        raise ScriptError("expected a program such as def f(A: float32[4]): ..., found none", 1, 1)
    module = IRModule({})
    for node in functions:
        if node.name in module:
            fail(f"two programs are named {node.name!r}", node)
        module = module.with_function(_read(node))
    verify_module(module)
    return module


def _functions(text: str) -> list[ast.FunctionDef]:
    if len(text) > MAX_TEXT:
        raise ScriptError(f"the text has {len(text)} characters; at most {MAX_TEXT} are read", 1, 1)
    try:
        tree = ast.parse(text)
    except SyntaxError as e:
        raise ScriptError(f"no Python syntax: {e.msg}", e.lineno or 1, max(e.offset or 1, 1)) from None
    except (ValueError, MemoryError, RecursionError) as e:
        raise ScriptError(f"no Python syntax: {type(e).__name__.lower()}", 1, 1) from None
    # Python's tree has a few nodes for each of the IR's.
    nodes = list(ast.walk(tree))
    if len(nodes) > 20 * MAX_NODES:
        raise ScriptError(f"more than {20 * MAX_NODES} syntax nodes", 1, 1)
    for x in nodes:
        if isinstance(x, ast.Name):
            _named(x.id, x)
        elif isinstance(x, ast.arg | ast.keyword) and x.arg is not None:
            _named(x.arg, x)
        elif isinstance(x, ast.FunctionDef):
            _named(x.name, x)
    out = []
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef):
            fail(f"expected def name(...):, got {shown(node)}", node)
        out.append(node)
    return out


def _named(name: str, node: ast.AST) -> None:
    if not is_name(name):
        fail(f"{NAME}, got {name if len(name) <= 40 else f'{name[:37]}...'!r}", node)


def _read(node: ast.FunctionDef, *, trusted: bool = False) -> PrimFunc:
    try:
        return _Reader(trusted).func(node)
    except RecursionError:
        fail("nested too deep", node)


class _Reader:
    def __init__(self, trusted: bool) -> None:
        self.buffers: dict[str, Buffer] = {}
        self.sizes: dict[str, Poly] = {}
        self.values = Values(self.buffers, self.sizes, trusted=trusted)

    def func(self, node: ast.FunctionDef) -> PrimFunc:
        a = node.args
        if a.posonlyargs or a.kwonlyargs or a.vararg or a.kwarg or a.defaults or node.decorator_list:
            fail("expected parameters such as A: float32[4, 8] and nothing else", node)
        for x in a.args:
            self.declare_sizes(x)
        params = tuple(self.parameter(x) for x in a.args)
        body = list(node.body)
        allocs = []
        while body and isinstance(body[0], ast.Assign) and isinstance(body[0].targets[0], ast.Name):
            allocs.append(self.allocation(body.pop(0)))
        if not body:
            fail("expected a loop or an assignment", node)
        return PrimFunc(node.name, params, tuple(allocs), self.body(body, (), self.sizes))

    # Buffers

    def declare_sizes(self, a: ast.arg) -> None:
        """A name that is a dimension of a parameter by itself is a size, known at the call."""
        for node in _dimensions(a.annotation):
            if isinstance(node, ast.Name) and node.id not in self.sizes:
                self.sizes[node.id] = poly(Size(node.id))

    def parameter(self, a: ast.arg) -> Buffer:
        if a.annotation is None:
            fail(f"expected the shape of {a.arg}, such as {a.arg}: float32[4, 8]", a)
        node = a.annotation
        if not (isinstance(node, ast.Call) and called(node) == "constant"):
            return self.buffer(a.arg, node, a)
        if len(node.args) != 1 or node.keywords:
            fail("constant takes an array such as float32[4, 8]", node)
        return self.buffer(a.arg, node.args[0], a, constant=True)

    def allocation(self, node: ast.stmt) -> Buffer:
        assert isinstance(node, ast.Assign)
        name, call = node.targets[0], node.value
        assert isinstance(name, ast.Name)
        if len(node.targets) != 1 or not (isinstance(call, ast.Call) and called(call) == "alloc"):
            fail(f"expected {name.id} = alloc(float32[4, 8]), got {shown(node)}", node)
        return self.buffer(name.id, call, node)

    def buffer(self, name: str, node: ast.expr, at: ast.AST, *, constant: bool = False) -> Buffer:
        scope = "global"
        if isinstance(node, ast.Call) and called(node) == "alloc":
            if not 1 <= len(node.args) <= 2 or node.keywords:
                fail("alloc takes an array such as float32[4, 8], and a scope", node)
            if len(node.args) == 2:
                scope = string(node.args[1])
                if scope not in SCOPES:
                    fail(f"unknown scope {scope!r}; known: {', '.join(SCOPES)}", node.args[1])
            node = node.args[0]
        if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
            fail(f"expected an array such as float32[4, 8], got {shown(node)}", node)
        try:
            dtype = DType.scalar(node.value.id)
        except TypeMismatch as e:
            fail(str(e), node)
        if name in self.buffers:
            fail(f"two buffers are named {name!r}", at)
        shape = self.values.indices(node.slice)
        for extent in shape:
            self.extent(extent, node)
        b = Buffer(name, shape, dtype, scope, constant)  # type: ignore[arg-type]
        self.buffers[name] = b
        return b

    # Statements

    def body(
        self, body: Sequence[ast.stmt], path: tuple[Var, ...], names: Mapping[str, Poly]
    ) -> tuple[Stmt, ...]:
        return tuple(self.stmt(s, path, names) for s in body)

    def stmt(self, node: ast.stmt, path: tuple[Var, ...], names: Mapping[str, Poly]) -> Stmt:
        match node:
            case ast.For():
                return self.loop(node, path, names)
            case ast.With():
                return self.block(node, path, names)
            case ast.Assign() | ast.AugAssign() | ast.If():
                return self.step([node], path, names, _Head())
        fail(f"expected a loop, a block or an assignment, got {shown(node)}", node)

    def loop(self, node: ast.For, path: tuple[Var, ...], names: Mapping[str, Poly]) -> For:
        if not isinstance(node.target, ast.Name):
            fail("expected one loop variable", node)
        call = node.iter
        if not isinstance(call, ast.Call) or called(call) not in _KINDS or len(call.args) != 1:
            fail(f"expected one of {', '.join(f'{k}(n)' for k in _KINDS)}, got {shown(call)}", call)
        if node.orelse:
            fail("a loop has no else", node.orelse[0])
        extent = self.extent(self.values.under(names).index(call.args[0]), call.args[0])
        var = Var(node.target.id, extent)
        body = self.body(node.body, (*path, var), {**names, var.name: poly(var)})
        kind = _KINDS[called(call)]
        return For(var, body, kind, annotated(call.keywords))

    def extent(self, p: Poly, node: ast.expr) -> Poly:
        if p.const is not None and p.const < 1:
            fail(f"an extent must be at least 1, got {p!r}", node)
        if not self.values.trusted and (p.vars() or not proven_negative(-lower(p) - 1)):
            fail(f"an extent of sizes must be at least 0 for all of them, got {p!r}", node)
        return p

    def block(self, node: ast.With, path: tuple[Var, ...], names: Mapping[str, Poly]) -> Block:
        call = node.items[0].context_expr
        if len(node.items) != 1 or node.items[0].optional_vars or called(call) != "block":
            fail(f"expected with block('C'):, got {shown(node)}", node)
        assert isinstance(call, ast.Call)
        none = len(call.args) == 2 and isinstance(call.args[1], ast.Constant) and call.args[1].value is None
        if len(call.args) != 1 and not none:
            fail("expected block('C', i=spatial(i_0), ...)", call)
        head = _Head(name=string(call.args[0]))
        words = []
        for k in call.keywords:
            if isinstance(k.value, ast.Call):
                head.iter(k, self.iteration(k, k.value, names))
            else:
                words.append(k)
        if none:
            head.iters = head.iters or []
        head.annotations = annotated(words)
        return self.step(node.body, path, names, head)

    def iteration(
        self, k: ast.keyword, call: ast.Call, names: Mapping[str, Poly]
    ) -> tuple[Var, IterKind, Poly]:
        known = [kind.value for kind in IterKind]
        if called(call) not in known or call.keywords or not 1 <= len(call.args) <= 2 or k.arg is None:
            fail(f"expected {' or '.join(f'{n}(index, extent)' for n in known)}, got {shown(call)}", call)
        values = self.values.under(names)
        bind = values.index(call.args[0])
        extent = values.index(call.args[1]) if len(call.args) == 2 else extent_of(bind)
        if extent is None:
            fail(f"expected the extent of {k.arg} behind its index, such as spatial(i_0 * 4 + i_1, 10)", call)
        return Var(k.arg, self.extent(extent, call)), IterKind(called(call)), bind

    def step(
        self, body: Sequence[ast.stmt], path: tuple[Var, ...], names: Mapping[str, Poly], head: _Head
    ) -> Block:
        """The condition, the init and the assignment of one block."""
        predicates: tuple[Poly, ...] = ()
        node = body[0]
        if isinstance(node, ast.If):
            if node.orelse or len(body) != 1:
                fail("a condition holds one assignment and has no else", node)
            predicates = self.values.under(names).conditions(node.test)
            body = node.body
        init = None
        if isinstance(body[0], ast.With):
            call = body[0].items[0].context_expr
            if called(call) != "init" or len(body[0].body) != 1:
                fail(f"expected with init():, got {shown(call)}", body[0])
            init, body = body[0].body[0], body[1:]
        if len(body) != 1:
            at = body[1] if len(body) > 1 else node
            fail("expected one assignment in a block", at)
        if head.iters is None:
            own = tuple(Var(v.name, v.extent) for v in path)
            binds = tuple(map(poly, path))
        else:
            own = tuple(v for v, _, _ in head.iters)
            binds = tuple(bind for _, _, bind in head.iters)
        values = self.values.under({**self.sizes, **{v.name: poly(v) for v in own}})
        target, value = _assignment(body[0], values)
        if head.iters is None:
            moving = {v for i in target.indices for v in i.vars()}
            kinds = loop_kinds(own, target.buffer, moving, value)
        else:
            kinds = tuple(kind for _, kind, _ in head.iters)
        first = None
        if init is not None:
            written, first = _assignment(init, values)
            if written.buffer is not target.buffer or written.indices != target.indices:
                fail("the init writes another element than the steps", init)
        name = target.buffer.name if head.name is None else head.name
        return Block(
            name,
            own,
            kinds,
            binds,
            target.buffer,
            target.indices,
            value,
            first,
            predicates,
            head.annotations,
        )


def _dimensions(annotation: ast.expr | None) -> Sequence[ast.expr]:
    """What stands between the brackets of a parameter's array; nothing for what is no array."""
    while isinstance(annotation, ast.Call) and annotation.args:
        annotation = annotation.args[0]
    if not isinstance(annotation, ast.Subscript):
        return ()
    return annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else (annotation.slice,)


class _Head:
    """What the line of a block tells: its name, iteration variables (None: those of the loops) and
    annotations."""

    def __init__(self, name: str | None = None) -> None:
        self.name = name
        self.iters: list[tuple[Var, IterKind, Poly]] | None = None
        self.annotations: Annotations = ()

    def iter(self, k: ast.keyword, it: tuple[Var, IterKind, Poly]) -> None:
        self.iters = [*(self.iters or []), it]


def _assignment(node: ast.stmt, values: Values) -> tuple[Load, Expr]:
    match node:
        case ast.Assign(targets=[target], value=right):
            element = values.load(target)
            value = values.value(right, element.buffer.dtype)
        case ast.AugAssign(target=target, op=ast.Add(), value=right):
            element = values.load(target)
            value = values.value(right, element.buffer.dtype)
            if value.dtype == element.buffer.dtype:
                reason = refused("add", value.dtype)
                if reason is not None:
                    fail(reason, node)
                value = Binary("add", element, value)
        case _:
            fail(f"expected an assignment such as C[i] = A[i], got {shown(node)}", node)
    if value.dtype != element.buffer.dtype:
        fail(f"{element.buffer.name} holds {element.buffer.dtype}, got {value.dtype}", node)
    return element, value
