"""The data file of a workload: inputs, what must come out, and how far a kernel may be from it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...compiler.codegen.dims import params_of
from ...compiler.codegen.standalone import Layout
from ...compiler.codegen.standalone.layout import Part
from ..reference import Reference

Array = np.ndarray[Any, Any]


def write_data(reference: Reference, path: Path) -> int:
    """Writes the file that `Layout` describes; its bytes. Raises BuildError for a workload that no program of
    its own can be made for."""
    layout = Layout.of(params_of(reference.func))
    with path.open("wb") as file:
        for part, array in _parts(reference, layout):
            file.seek(part.offset)
            assert array.nbytes == part.bytes
            file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        file.truncate(layout.bytes)
    return layout.bytes


def _parts(reference: Reference, layout: Layout) -> Iterator[tuple[Part, Array]]:
    for part, array in zip(layout.inputs, reference.arrays, strict=True):
        if part is not None:
            yield part, array
    outputs = zip(reference.expected.outputs, reference.expected.tolerances, strict=True)
    for place, (want, tolerance) in zip(reference.expected.positions, outputs, strict=True):
        for part, array in ((layout.expected[place], want), (layout.tolerances[place], tolerance)):
            assert part is not None
            yield part, array
