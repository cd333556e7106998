"""PrimFuncs as text in Python syntax: loops, assignments, and an `if` for the instances that exist.

A block iterates over the loops around it. Where it does not (a split loop, a tail, another order), a line
`with block('C', i=spatial(i_0 * 4 + i_1, 10), k=reduce(k)):` names its iteration variables, and what stands
below it is written in these. `parser.parse_script` reads the text back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .expr import Buffer
from .func import PrimFunc
from .module import IRModule
from .names import free, spoken
from .spelling import Spelling
from .stmt import Block, For, IterKind, LoopKind, Stmt
from .trivial import extent_of, is_trivial
from .visit import Path

_INDENT = "    "


def script(program: PrimFunc | IRModule, mark: Stmt | None = None, note: str = "") -> str:
    """The program as Python text that `parse_script` reads back (`parse_module` for a module).

    The header line of `mark` is underlined, with `note` behind it; such a text is for reading only.
    """
    if isinstance(program, IRModule):
        return "\n".join(script(f, mark, note) for f in program.functions.values())
    return _Printer(mark, note).func(program)


def loop_nest(body: Sequence[Stmt], mark: Stmt | None = None, note: str = "") -> str:
    """Statements without the function around them."""
    printer = _Printer(mark, note)
    printer.body(body, 0, ())
    return printer.text()


class _Printer:
    def __init__(self, mark: Stmt | None, note: str) -> None:
        self.mark, self.note = mark, note
        self.lines: list[str] = []
        self.words = Spelling()

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    def func(self, f: PrimFunc) -> str:
        for b in f.params + f.allocs:
            self.words.declare_buffer(b)
        for size in f.sizes:
            self.words.declare_size(size)
        params = ", ".join(map(self.parameter, f.params))
        self.lines.append(f"def {spoken(f.name)}({params}):")
        for b in f.allocs:
            self.lines.append(f"{_INDENT}{self.words.buffer(b)} = {self.allocation(b)}")
        self.body(f.body, 1, ())
        return self.text()

    def parameter(self, b: Buffer) -> str:
        array = self.array(b) if b.scope == "global" else self.allocation(b)
        return f"{self.words.buffer(b)}: {f'constant({array})' if b.constant else array}"

    def array(self, b: Buffer) -> str:
        return f"{b.dtype}[{self.words.indices(b.shape)}]"

    def allocation(self, b: Buffer) -> str:
        scope = "" if b.scope == "global" else f", {b.scope!r}"
        return f"alloc({self.array(b)}{scope})"

    def body(self, body: Iterable[Stmt], depth: int, path: Path) -> None:
        for s in body:
            at = len(self.lines)
            if type(s) is For:
                self.loop(s, depth, path)
            else:
                assert type(s) is Block
                self.block(s, depth, path)
            if s is self.mark:
                pad = len(self.lines[at]) - len(self.lines[at].lstrip())
                under = " " * pad + "^" * len(self.lines[at].strip())
                self.lines.insert(at + 1, f"{under} {self.note}".rstrip())

    def put(self, depth: int, text: str) -> None:
        self.lines.append(_INDENT * depth + text)

    def loop(self, s: For, depth: int, path: Path) -> None:
        extent = self.words.index(s.var.extent)
        head = "range" if s.kind is LoopKind.SERIAL else s.kind.value
        outer = self.words
        self.words = outer.inside()
        self.words.declare(s.var)
        self.put(depth, f"for {self.words.name(s.var)} in {head}({extent}{_annotations(s.annotations)}):")
        self.body(s.body, depth + 1, (*path, s))
        self.words = outer

    def block(self, b: Block, depth: int, path: Path) -> None:
        outer = self.words
        trivial = is_trivial(b, path)
        inner = outer.inside()
        iters = ""
        if trivial:
            for it, f in zip(b.iters, path, strict=True):
                inner.alias(it, f.var)
        else:
            taken = {k for k, _ in b.annotations}
            for it, kind, bind in zip(b.iters, b.kinds, b.binds, strict=True):
                name = free(it.name, taken)
                taken.add(name)
                inner.declare(it, name)
                extent = "" if it.extent == extent_of(bind) else f", {outer.index(it.extent)}"
                iters += f", {name}={_kind(kind)}({outer.index(bind)}{extent})"
            # No iteration variable at all is not the same as one for each loop.
            iters = iters or ", None"
        target = f"{outer.buffer(b.buffer)}[{inner.indices(b.indices)}]"
        if not trivial or b.init is not None or b.annotations or b.name != outer.buffer(b.buffer):
            self.put(depth, f"with block({b.name!r}{iters}{_annotations(b.annotations)}):")
            depth += 1
        if b.predicates:
            self.put(depth, f"if {' and '.join(map(outer.condition, b.predicates))}:")
            depth += 1
        if b.init is not None:
            self.put(depth, "with init():")
            self.put(depth + 1, f"{target} = {inner.value(b.init, b.buffer.dtype)}")
        self.put(depth, f"{target} {inner.assignment(b)}")


def _kind(kind: IterKind) -> str:
    return kind.value


def _annotations(annotations: Iterable[tuple[str, object]]) -> str:
    """`, hint=3`; a key that is no name of Python's stands in `**{'a.b': 3}`."""
    plain, other = "", []
    for key, value in sorted(annotations):
        if spoken(key) == key and key.isascii():
            plain += f", {key}={value!r}"
        else:
            other.append(f"{key!r}: {value!r}")
    return plain + (f", **{{{', '.join(other)}}}" if other else "")
