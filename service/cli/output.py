"""Where a command writes: data on stdout, words for a person on stderr."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.table import Table


def messages() -> Console:
    """The console for a person. Made when used, so that it is the stderr of now."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def visible(text: str, keep: str = "\n\t") -> str:
    """`text` with every character written out that does something to a terminal or turns the order of a line
    around: names come from other people. Those of `keep` stay. JSON
    means the same as before."""
    return "".join(c if c in keep or not _acts(c) else json.dumps(c)[1:-1] for c in text)


def _acts(c: str) -> bool:
    """Controls, and the marks of direction, which are of the category of formats."""
    return unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs")


def say(line: str) -> None:
    """A line on stderr."""
    print(visible(line), file=sys.stderr, flush=True)


def show_json(value: Any) -> None:
    """One JSON document on stdout, for programs."""
    print(visible(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2)), flush=True)


def show_json_line(value: Any) -> None:
    """One of a stream of JSON documents, each on a line of its own."""
    print(visible(json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))), flush=True)


def show(value: Any, as_json: bool, human: Callable[[], str]) -> None:
    """`value` as JSON, or what `human` makes of it, on stdout."""
    if as_json:
        show_json(value)
    else:
        print(visible(human()), flush=True)


def table(columns: list[str], rows: list[list[str]]) -> str:
    """Rows in columns, as text that is as wide as it needs to be."""
    grid = Table(box=None, pad_edge=False, header_style="")
    for column in columns:
        grid.add_column(column, no_wrap=True)
    for row in rows:
        grid.add_row(*(visible(cell, "").replace("[", "\\[") for cell in row))
    wide = Console(width=1000, color_system=None)
    with wide.capture() as captured:
        wide.print(grid)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())
