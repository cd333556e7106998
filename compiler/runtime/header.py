"""The C interface of exported functions."""

import re
from collections.abc import Mapping

from ..target import Target
from .dims import text
from .function import Function
from .packing import PackInfo
from .pool import PARALLEL

_TYPES = {
    "float32": "float",
    "float64": "double",
    "bool": "uint8_t",
    "float16": "uint16_t",
    "bfloat16": "uint16_t",
}
_KEYWORDS = frozenset(
    [
        "auto",
        "break",
        "case",
        "char",
        "const",
        "continue",
        "default",
        "do",
        "double",
        "else",
        "enum",
        "extern",
        "float",
        "for",
        "goto",
        "if",
        "inline",
        "int",
        "long",
        "register",
        "restrict",
        "return",
        "short",
        "signed",
        "sizeof",
        "static",
        "struct",
        "switch",
        "typedef",
        "union",
        "unsigned",
        "void",
        "volatile",
        "while",
        "bool",
        "class",
        "new",
        "delete",
        "this",
        "template",
        "typename",
        "namespace",
        "public",
        "private",
        "protected",
        "virtual",
        "operator",
        "friend",
        "try",
        "catch",
        "throw",
        "using",
        "true",
        "false",
        "asm",
    ]
)


def header(functions: Mapping[str, Function], target: Target) -> str:
    """C declarations of the functions, readable by C++ too.

    Each takes a pointer for each parameter, in order, then the sizes that are not known before the call, then
    a pointer for each workspace: memory of as many bytes as the comment says, aligned to 64, which no other
    call uses at the same time. Elements lie in C
    order without gaps, aligned to their type; outputs overlap no other argument. bool is a byte of 0 or 1,
    float16 and bfloat16 are their bits.

    Where constants are packed, the function that does so comes first. What it has filled is read only, by any
    number of calls, at the same time too.
    """
    guard = "TILEWRIGHT_" + re.sub(r"\W", "_", "_".join(f.symbol for f in functions.values())).upper() + "_H"
    lines = [
        f"/* Compiled by Tilewright for {target} */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        "#include <stdint.h>",
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
    ]
    if any(_is_parallel(f) for f in functions.values()):
        lines += [
            "",
            f"/* At most n of the {target.num_threads} threads these functions are made for; 0: all. */",
            "void tilewright_set_num_threads(int64_t n);",
        ]
    for function in functions.values():
        lines += ["", *_declaration(function)]
    lines += ["", "#ifdef __cplusplus", "}", "#endif", f"#endif /* {guard} */"]
    return "\n".join(lines) + "\n"


def _is_parallel(function: Function) -> bool:
    """Whether its code holds a thread pool: a target of several threads makes no loop parallel."""
    return f"@{PARALLEL}(" in function.source()


def _declaration(function: Function) -> list[str]:
    names: list[str] = []
    notes: list[str] = []
    arguments: list[str] = []
    for p in function.params:
        name = _fresh(p.name, names)
        kind = _TYPES.get(p.dtype, f"{p.dtype}_t")
        shape = ", ".join(map(text, p.shape))
        consumed = function.pack is not None and p.name in function.pack.consumed
        more = ", written" if p.is_output else ", packed before and not read here" if consumed else ""
        notes.append(f" * {name}: {p.dtype}[{shape}]{more}")
        arguments.append(f"{kind} *{name}" if p.is_output else f"const {kind} *{name}")
    for size in function.sizes:
        arguments.append(f"int64_t {_fresh(size, names)}")
    for n, workspace in enumerate(function.workspaces):
        name = _fresh(f"workspace{n}", names)
        if workspace.is_packed and function.pack is not None:
            notes.append(f" * {name}: {text(workspace.bytes)} bytes that {function.pack.symbol} filled")
            arguments.append(f"const void *{name}")
            continue
        notes.append(f" * {name}: {text(workspace.bytes)} bytes, aligned to 64")
        arguments.append(f"void *{name}")
    return [
        *(_packing(function.pack) if function.pack is not None else ()),
        f"/* {function.name}",
        *notes,
        " */",
        f"void {function.symbol}({', '.join(arguments) or 'void'});",
    ]


def _packing(pack: PackInfo) -> list[str]:
    names: list[str] = []
    notes: list[str] = []
    arguments: list[str] = []
    for p in pack.params:
        name = _fresh(p.name, names)
        notes.append(f" * {name}: {p.dtype}[{', '.join(map(text, p.shape))}]")
        arguments.append(f"const {_TYPES.get(p.dtype, f'{p.dtype}_t')} *{name}")
    for n, size in enumerate(pack.workspaces):
        name = _fresh(f"packed{n}", names)
        notes.append(f" * {name}: {size} bytes, aligned to 64, written")
        arguments.append(f"void *{name}")
    return [f"/* {pack.symbol}", *notes, " */", f"void {pack.symbol}({', '.join(arguments)});", ""]


def _fresh(wanted: str, taken: list[str]) -> str:
    word = re.sub(r"[^A-Za-z0-9_]", "_", wanted) or "p"
    word = f"p{word}" if word[0].isdigit() else f"{word}_" if word in _KEYWORDS else word
    name, n = word, 1
    while name in taken:
        name, n = f"{word}_{n}", n + 1
    taken.append(name)
    return name
