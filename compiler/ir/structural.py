"""What programs mean, whatever their names and nodes are: equality and hash.

Two programs are equal when their canonical JSON is (see `json`): the same buffers, loops, blocks, bindings,
predicates, annotations and values, where variables, buffers and blocks may bear other names and the terms of
an index may have been added in another order.
"""

from __future__ import annotations

import hashlib

import rfc8785

from .func import PrimFunc
from .json import canonical_json, workload_key
from .module import IRModule


def structural_equal(a: PrimFunc | IRModule, b: PrimFunc | IRModule) -> bool:
    """Whether two programs are equal up to names; or two modules, whose programs must then be equal under
    equal names, in any order: a caller finds a program by its name. A program equals no module."""
    if isinstance(a, PrimFunc) and isinstance(b, PrimFunc):
        return a is b or canonical_json(a) == canonical_json(b)
    if isinstance(a, IRModule) and isinstance(b, IRModule):
        return set(a.names) == set(b.names) and all(structural_equal(a[n], b[n]) for n in a.names)
    return False


def structural_hash(program: PrimFunc | IRModule) -> str:
    """SHA-256 (hexadecimal) that equal programs share, in every process and on every platform; of a PrimFunc
    its workload key."""
    if isinstance(program, PrimFunc):
        return workload_key(program)
    keys = {name: workload_key(f) for name, f in program.functions.items()}
    return hashlib.sha256(rfc8785.dumps(keys)).hexdigest()
