"""Instructions, each in the outermost loop that it may live in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from ..errors import BuildError

#: More instructions than this are refused: code generation takes seconds and the kernel leaves the
#: instruction cache.
MAX_INSTRUCTIONS = 4000


_VALUE = re.compile(r"%\w+")


class Scope:
    """The straight-line part of a loop body, a branch or the function: its text and its values' names."""

    __slots__ = ("decided", "label", "lines", "loads", "memo")

    def __init__(self, label: str) -> None:
        self.lines: list[str] = []
        self.memo: dict[object, str] = {}
        #: Loaded values by address, guards and the number of stores before; only of this scope.
        self.loads: dict[object, tuple[str, bool]] = {}
        #: Conditions by polynomials and the values of the unrolled loops: what is known to hold is the same
        #: in all of a scope.
        self.decided: dict[object, tuple[str, bool] | bool] = {}
        #: The basic block that the next instruction goes to.
        self.label = label


class Builder:
    """The text of a function in the making: nested scopes, and the depth of the scope of each value."""

    def __init__(self, limit: int = MAX_INSTRUCTIONS) -> None:
        self.limit = limit
        self.count = 0
        self.scopes = [Scope("entry")]
        self.declarations: set[str] = set()
        self._depth: dict[str, int] = {}
        self._names = 0

    @property
    def scope(self) -> Scope:
        """The innermost scope."""
        return self.scopes[-1]

    @contextmanager
    def function(self, arguments: Iterable[str]) -> Iterator[Scope]:
        """What is put meanwhile goes to a function of its own, whose entry this is; of the values there were,
        it has those named as its arguments."""
        scopes, self.scopes = self.scopes, [Scope("entry")]
        depths = {name: self._depth.pop(name) for name in arguments if name in self._depth}
        yield self.scopes[0]
        self.scopes = scopes
        self._depth.update(depths)

    def number(self) -> int:
        """A number that no other label or value has."""
        self._names += 1
        return self._names

    def name(self) -> str:
        """A new value name of the innermost scope."""
        name = f"%t{self.number()}"
        self._depth[name] = len(self.scopes) - 1
        return name

    def depth(self, value: str) -> int:
        """The depth of the scope that the value belongs to; 0 for arguments and literals."""
        return self._depth.get(value, 0)

    def leave(self, value: str) -> None:
        """A value of a loop that has ended is one of the innermost scope from here on."""
        self._depth[value] = min(self._depth.get(value, 0), len(self.scopes) - 1)

    def put(self, text: str) -> str:
        """An instruction in the innermost scope; its value's name."""
        return self._put(text, len(self.scopes) - 1)

    def shared(self, text: str) -> str:
        """An instruction without side effects in the innermost scope; the same text gives the same value."""
        memo = self.scopes[-1].memo
        name = memo.get(text)
        if name is None:
            name = memo[text] = self._put(text, len(self.scopes) - 1)
        return name

    def hoisted(self, text: str) -> str:
        """An instruction without side effects that does not trap, in the outermost scope that has the values
        it names; the same text gives the same value.

        A scalar that a row is divided by is computed once for the row, not once for each of its vectors.
        """
        own = self._depth
        depth = max([own.get(name, 0) for name in _VALUE.findall(text)], default=0)
        memo = self.scopes[depth].memo
        name = memo.get(text)
        if name is None:
            name = memo[text] = self._put(text, depth)
        return name

    def pure(self, form: str, *operands: str | int) -> str:
        """An instruction without side effects, in the outermost scope that has its operands, once per scope.

        It may run where the loops below run no iteration, so it must not trap.
        """
        depth = 0
        for o in operands:
            if type(o) is str and (d := self._depth.get(o, 0)) > depth:
                depth = d
        key = (form, operands)
        memo = self.scopes[depth].memo
        name = memo.get(key)
        if name is None:
            name = memo[key] = self._put(form.format(*operands), depth)
        return name

    def statement(self, text: str) -> None:
        """An instruction without a value in the innermost scope."""
        self.scopes[-1].lines.append("  " + text)
        self.spend(1)

    def spend(self, instructions: int) -> None:
        """Counts instructions. Raises BuildError over the limit."""
        self.count += instructions
        if self.count > self.limit:
            raise BuildError(f"the kernel needs more than {self.limit} instructions: unroll less")

    def declare(self, result: str, function: str, *arguments: str) -> None:
        """An intrinsic that the text calls."""
        self.declarations.add(f"declare {result} {function}({', '.join(arguments)})")

    def _put(self, text: str, depth: int) -> str:
        self._names += 1
        name = f"%t{self._names}"
        self._depth[name] = depth
        self.scopes[depth].lines.append(f"  {name} = {text}")
        self.spend(1)
        return name
