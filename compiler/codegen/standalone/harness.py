"""What stands around a kernel in a program of its own, as LLVM text.

The program reads file descriptor 3, the data file that `Layout` describes, and talks in words of 64 bits,
little-endian, over 0 and 1:

    it reads     a number of microseconds: it may run from now on, and dies of SIGPROF when its first call
                 takes more processor time (0: however long it takes)
    it writes    the first call's nanoseconds, then what the check of its outputs found, of 7 words: the worst
                 |got - want| / tolerance, the number of elements beyond 1, and of the worst element the
                 parameter, the index, what was there, what was wanted, the tolerance (floats as float64)
    it reads     how often to call the kernel, which it does; it writes the nanoseconds that this took
    ...
    it reads     0, and writes two words, each the number of a parameter or -1: an input that the kernel wrote
                 into, and an output that later calls left otherwise than the first; and exits with 0

Inputs are copies of the file's, 16 bytes behind a multiple of 64 (measure/candidate.py says why); outputs are
poisoned. Time is processor time of the one thread. It exits with 12 where it is given too little memory, with
13 where a descriptor ends early, and dies with its parent. It opens nothing and needs no other file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...runtime import ParamInfo
from ..lowered import Lowered
from .check_text import check_function
from .layout import Layout, size_of
from .linux import SYSTEM, Linux

NO_MEMORY, NO_DATA = 12, 13
"""Exit statuses."""

ENTRY = "_start"

_LAID_OUT = 16
_REPORT_WORDS = 7
_CLOCK_THREAD_CPUTIME = 3
_PR_SET_PDEATHSIG, _SIGKILL = 1, 9
_ITIMER_PROF = 2
_PRIVATE, _ANONYMOUS, _READ_ONLY, _READ_WRITE = 2, 0x20, 1, 3
_POISON = {
    "float32": 0x7FC000007FC00000,
    "float64": 0x7FF8000000000000,
    "float16": 0x7E007E007E007E00,
    "bfloat16": 0x7FC07FC07FC07FC0,
}
_POISON_OF_INTEGERS = 0xA5A5A5A5A5A5A5A5


@dataclass(frozen=True, slots=True)
class Memory:
    """Offsets in the program's memory: of each parameter, of each workspace of the kernel, and of those that
    only packing needs; `bytes` of it."""

    params: tuple[int, ...]
    workspaces: tuple[int, ...]
    scratch: tuple[int, ...]
    bytes: int

    @classmethod
    def of(cls, lowered: Lowered) -> Memory:
        at = 0

        def place(size: int, behind: int = 0) -> int:
            nonlocal at
            start = at + behind
            at = -(-(start + size) // 64) * 64
            return start

        params = tuple(place(size_of(p), _LAID_OUT) for p in lowered.params)
        workspaces = tuple(place(w.bytes if isinstance(w.bytes, int) else 0) for w in lowered.workspaces)
        scratch = tuple(place(size) for size in _scratch_of(lowered))
        # Whole words are poisoned, so that the last output may need some bytes more.
        return cls(params, workspaces, scratch, at + 64)


def _scratch_of(lowered: Lowered) -> Sequence[int]:
    if lowered.pack is None:
        return ()
    return lowered.pack.workspaces[sum(w.is_packed for w in lowered.workspaces) :]


def harness(lowered: Lowered, layout: Layout, memory: Memory, system: Linux, *, aligns_stack: bool) -> str:
    """The text, which defines ENTRY and needs SYSTEM. aligns_stack: a program begins with a stack that is
    aligned otherwise than a function's."""
    dtypes = sorted({p.dtype for p in lowered.params if p.is_output})
    attributes = ' "stackrealign"' if aligns_stack else ""
    return "\n".join([
        # Not declared as a function: kernels may call none.
        f"@{SYSTEM} = external hidden global i8",
        *_runtime(system),
        *(check_function(dtype) for dtype in dtypes),
        "declare double @llvm.fabs.f64(double)",
        f"define void @{ENTRY}() noreturn nounwind{attributes} {{",
        *(f"  {line}" if not line.endswith(":") else line for line in _main(lowered, layout, memory, system)),
        "}",
    ])  # fmt: skip


def _main(lowered: Lowered, layout: Layout, memory: Memory, system: Linux) -> Iterator[str]:
    outputs = [n for n, p in enumerate(lowered.params) if p.is_output]
    yield "entry:"
    yield "%word = alloca i64"
    yield f"%report = alloca [{_REPORT_WORDS} x i64]"
    yield "%verdict = alloca [2 x i64]"
    yield from _call("", system.prctl, _PR_SET_PDEATHSIG, _SIGKILL)
    yield from _mapped("data", system, layout.bytes, _READ_ONLY, _PRIVATE, 3)
    yield from _mapped("memory", system, memory.bytes, _READ_WRITE, _PRIVATE | _ANONYMOUS, -1)
    yield from _addresses(lowered, layout, memory)
    for n, p in enumerate(lowered.params):
        if (part := layout.inputs[n]) is not None:
            yield f"call void @memcpy(ptr %p{n}, ptr %in{n}, i64 {part.bytes})"
        else:
            pattern = _POISON.get(p.dtype, _POISON_OF_INTEGERS)
            yield f"call void @tw.fill(ptr %p{n}, i64 {pattern}, i64 {-(-size_of(p) // 8)})"
    yield "call void @tw.read(ptr %word, i64 8)"
    yield "%alarm = load i64, ptr %word"
    yield "call void @tw.alarm(i64 %alarm)"
    yield from _packing(lowered)
    yield "%t0 = call i64 @tw.now()"
    yield _kernel(lowered)
    yield "%t1 = call i64 @tw.now()"
    yield "call void @tw.alarm(i64 0)"
    yield "%first = sub i64 %t1, %t0"
    yield "store i64 %first, ptr %word"
    yield "call void @tw.write(ptr %word, i64 8)"
    yield f"call void @tw.fill(ptr %report, i64 0, i64 {_REPORT_WORDS})"
    for n in outputs:
        p = lowered.params[n]
        yield (
            f"call void @tw.check.{p.dtype}(ptr %p{n}, ptr %want{n}, ptr %tolerance{n}, "
            f"i64 {_count(layout, n)}, ptr %report, i64 {n})"
        )
    yield f"call void @tw.write(ptr %report, i64 {8 * _REPORT_WORDS})"
    for n in outputs:
        yield f"%once{n} = call i64 @tw.hash(ptr %p{n}, i64 {size_of(lowered.params[n])})"
    yield "br label %next"
    yield "next:"
    yield "call void @tw.read(ptr %word, i64 8)"
    yield "%calls = load i64, ptr %word"
    yield "%more = icmp sgt i64 %calls, 0"
    yield "%u0 = call i64 @tw.now()"
    yield "br i1 %more, label %again, label %last"
    yield "again:"
    yield "%n = phi i64 [ 0, %next ], [ %m, %again ]"
    yield _kernel(lowered)
    yield "%m = add i64 %n, 1"
    yield "%go = icmp slt i64 %m, %calls"
    yield "br i1 %go, label %again, label %timed"
    yield "timed:"
    yield "%u1 = call i64 @tw.now()"
    yield "%took = sub i64 %u1, %u0"
    yield "store i64 %took, ptr %word"
    yield "call void @tw.write(ptr %word, i64 8)"
    yield "br label %next"
    yield "last:"
    yield from _verdict(lowered.params, layout)
    yield "call void @tw.write(ptr %verdict, i64 16)"
    yield "call void @tw.exit(i64 0)"
    yield "unreachable"


def _count(layout: Layout, n: int) -> int:
    part = layout.tolerances[n]
    assert part is not None
    return part.bytes // 8


def _mapped(name: str, system: Linux, size: int, rights: int, how: int, descriptor: int) -> Iterator[str]:
    yield from _call(f"%{name}.at", system.mmap, 0, size, rights, how, descriptor, 0)
    yield f"%{name}.none = icmp ugt i64 %{name}.at, -4096"
    yield f"br i1 %{name}.none, label %{name}.bad, label %{name}.good"
    yield f"{name}.bad:"
    yield f"call void @tw.exit(i64 {NO_MEMORY})"
    yield "unreachable"
    yield f"{name}.good:"
    yield f"%{name} = inttoptr i64 %{name}.at to ptr"


def _addresses(lowered: Lowered, layout: Layout, memory: Memory) -> Iterator[str]:
    for name, base, parts in (
        ("in", "data", layout.inputs),
        ("want", "data", layout.expected),
        ("tolerance", "data", layout.tolerances),
    ):
        for n, part in enumerate(parts):
            if part is not None:
                yield f"%{name}{n} = getelementptr i8, ptr %{base}, i64 {part.offset}"
    for name, offsets in (("p", memory.params), ("w", memory.workspaces), ("s", memory.scratch)):
        for n, offset in enumerate(offsets):
            yield f"%{name}{n} = getelementptr i8, ptr %memory, i64 {offset}"


def _packing(lowered: Lowered) -> Iterator[str]:
    """What the kernel needs to be filled before its calls."""
    if lowered.pack is None:
        return
    names = [p.name for p in lowered.params]
    given = [f"ptr %p{names.index(p.name)}" for p in lowered.pack.params]
    given += [f"ptr %w{n}" for n, w in enumerate(lowered.workspaces) if w.is_packed]
    given += [f"ptr %s{n}" for n in range(len(_scratch_of(lowered)))]
    yield f"call void @{lowered.pack.symbol}({', '.join(given)})"


def _kernel(lowered: Lowered) -> str:
    given = [f"ptr %p{n}" for n in range(len(lowered.params))]
    given += [f"ptr %w{n}" for n in range(len(lowered.workspaces))]
    return f"call void @{lowered.name}({', '.join(given)})"


def _verdict(params: Sequence[ParamInfo], layout: Layout) -> Iterator[str]:
    """The last input that was written into, and the last output that differs, or -1."""
    for place, wanted in enumerate((False, True)):
        found = "-1"
        for n, p in enumerate(params):
            if p.is_output != wanted:
                continue
            yield f"%now{n} = call i64 @tw.hash(ptr %p{n}, i64 {size_of(p)})"
            if not wanted:
                yield f"%once{n} = call i64 @tw.hash(ptr %in{n}, i64 {size_of(p)})"
            yield f"%same{n} = icmp eq i64 %now{n}, %once{n}"
            yield f"%found{n} = select i1 %same{n}, i64 {found}, i64 {n}"
            found = f"%found{n}"
        yield f"%verdict{place} = getelementptr i64, ptr %verdict, i64 {place}"
        yield f"store i64 {found}, ptr %verdict{place}"


def _call(result: str, number: int, *arguments: int | str) -> Iterator[str]:
    given = [str(a) for a in arguments] + ["0"] * (6 - len(arguments))
    gives = f"{result} = " if result else ""
    yield f"{gives}call i64 @{SYSTEM}(i64 {number}, {', '.join(f'i64 {a}' for a in given)})"


def _runtime(system: Linux) -> Iterator[str]:
    """Reading, writing, the clock and the alarm; and what LLVM may call to move memory."""
    yield from _transfer("read", system.read, 0)
    yield from _transfer("write", system.write, 1)
    yield "define internal void @tw.exit(i64 %status) noinline {"
    yield from _call("", system.exit_group, "%status")
    yield "  ret void\n}"
    yield "define internal i64 @tw.now() noinline {"
    yield "  %at = alloca [2 x i64]\n  %a = ptrtoint ptr %at to i64"
    yield from _call("", system.clock_gettime, _CLOCK_THREAD_CPUTIME, "%a")
    yield "  %seconds = load i64, ptr %at"
    yield "  %q = getelementptr i64, ptr %at, i64 1\n  %nano = load i64, ptr %q"
    yield "  %s = mul i64 %seconds, 1000000000\n  %sum = add i64 %s, %nano\n  ret i64 %sum\n}"
    yield "define internal void @tw.alarm(i64 %micro) noinline {"
    yield "  %at = alloca [4 x i64]\n  call void @tw.fill(ptr %at, i64 0, i64 4)"
    yield "  %s = udiv i64 %micro, 1000000\n  %u = urem i64 %micro, 1000000"
    yield "  %p = getelementptr i64, ptr %at, i64 2\n  store i64 %s, ptr %p"
    yield "  %q = getelementptr i64, ptr %at, i64 3\n  store i64 %u, ptr %q\n  %a = ptrtoint ptr %at to i64"
    yield from _call("", system.setitimer, _ITIMER_PROF, "%a")
    yield "  ret void\n}"
    yield _MEMORY


def _transfer(name: str, number: int, descriptor: int) -> Iterator[str]:
    yield f"define internal void @tw.{name}(ptr %at, i64 %bytes) noinline {{"
    yield "entry:\n  br label %test"
    yield "test:\n  %done = phi i64 [ 0, %entry ], [ %sum, %more ]"
    yield "  %left = sub i64 %bytes, %done\n  %ended = icmp sle i64 %left, 0"
    yield "  br i1 %ended, label %out, label %more"
    yield "more:\n  %p = getelementptr i8, ptr %at, i64 %done\n  %a = ptrtoint ptr %p to i64"
    yield from _call("%r", number, descriptor, "%a", "%left")
    yield "  %sum = add i64 %done, %r\n  %failed = icmp sle i64 %r, 0"
    yield "  br i1 %failed, label %bad, label %test"
    yield f"bad:\n  call void @tw.exit(i64 {NO_DATA})\n  unreachable"
    yield "out:\n  ret void\n}"


# The hash is FNV-1a (Fowler, Noll, Vo; 64 bits) by words, folded after each so that high bits reach low ones.
_MEMORY = """\
define internal void @tw.fill(ptr %at, i64 %word, i64 %count) noinline {
entry:
  br label %test
test:
  %n = phi i64 [ 0, %entry ], [ %m, %more ]
  %go = icmp ult i64 %n, %count
  br i1 %go, label %more, label %out
more:
  %p = getelementptr i64, ptr %at, i64 %n
  store i64 %word, ptr %p, align 1
  %m = add i64 %n, 1
  br label %test
out:
  ret void
}
define hidden ptr @memcpy(ptr %to, ptr %from, i64 %bytes) noinline {
entry:
  %whole = and i64 %bytes, -8
  br label %test
test:
  %n = phi i64 [ 0, %entry ], [ %m, %more ]
  %go = icmp ult i64 %n, %whole
  br i1 %go, label %more, label %rest
more:
  %p = getelementptr i8, ptr %from, i64 %n
  %q = getelementptr i8, ptr %to, i64 %n
  %x = load i64, ptr %p, align 1
  store i64 %x, ptr %q, align 1
  %m = add i64 %n, 8
  br label %test
rest:
  %k = phi i64 [ %whole, %test ], [ %l, %byte ]
  %left = icmp ult i64 %k, %bytes
  br i1 %left, label %byte, label %out
byte:
  %r = getelementptr i8, ptr %from, i64 %k
  %s = getelementptr i8, ptr %to, i64 %k
  %y = load i8, ptr %r
  store i8 %y, ptr %s
  %l = add i64 %k, 1
  br label %rest
out:
  ret ptr %to
}
define hidden ptr @memset(ptr %to, i32 %value, i64 %bytes) noinline {
entry:
  %v = trunc i32 %value to i8
  br label %test
test:
  %n = phi i64 [ 0, %entry ], [ %m, %more ]
  %go = icmp ult i64 %n, %bytes
  br i1 %go, label %more, label %out
more:
  %p = getelementptr i8, ptr %to, i64 %n
  store i8 %v, ptr %p
  %m = add i64 %n, 1
  br label %test
out:
  ret ptr %to
}
define internal i64 @tw.hash(ptr %at, i64 %bytes) noinline {
entry:
  %whole = and i64 %bytes, -8
  br label %test
test:
  %n = phi i64 [ 0, %entry ], [ %m, %more ]
  %h = phi i64 [ -3750763034362895579, %entry ], [ %folded, %more ]
  %go = icmp ult i64 %n, %whole
  br i1 %go, label %more, label %rest
more:
  %p = getelementptr i8, ptr %at, i64 %n
  %x = load i64, ptr %p, align 1
  %mixed = xor i64 %h, %x
  %grown = mul i64 %mixed, 1099511628211
  %high = lshr i64 %grown, 29
  %folded = xor i64 %grown, %high
  %m = add i64 %n, 8
  br label %test
rest:
  %k = phi i64 [ %whole, %test ], [ %l, %byte ]
  %g = phi i64 [ %h, %test ], [ %mulled, %byte ]
  %left = icmp ult i64 %k, %bytes
  br i1 %left, label %byte, label %out
byte:
  %r = getelementptr i8, ptr %at, i64 %k
  %y = load i8, ptr %r
  %z = zext i8 %y to i64
  %w = xor i64 %g, %z
  %mulled = mul i64 %w, 1099511628211
  %l = add i64 %k, 1
  br label %rest
out:
  ret i64 %g
}"""
