"""Where a command writes: data on stdout, words for a person on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from typing import Any

from rich.console import Console
from rich.table import Table


def messages() -> Console:
    """The console for a person. Made when used, so that it is the stderr of now."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def visible(text: str, keep: str = "") -> str:
    """`text` with every character written out that is not printable: names come from other people, and such a
    character does something to a terminal, ends a line or turns its order around. Those of `keep` stay. JSON
    means the same as before."""
    if text.isprintable():
        return text
    return "".join(c if c in keep or c.isprintable() else json.dumps(c)[1:-1] for c in text)


def say(line: str) -> None:
    """A line on stderr, whatever is in it."""
    print(visible(line), file=sys.stderr, flush=True)


def show_lines(lines: Iterable[str]) -> None:
    """Lines on stdout, each of which stays one whatever is in it."""
    for line in lines:
        print(visible(line, "\t"), flush=True)


def show_json(value: Any) -> None:
    """One JSON document on stdout, for programs."""
    print(visible(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2), "\n"), flush=True)


def show_json_line(value: Any) -> None:
    """One of a stream of JSON documents, each on a line of its own."""
    print(visible(json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))), flush=True)


def show(value: Any, as_json: bool, human: Callable[[], str | Iterable[str]]) -> None:
    """`value` as JSON, or the line or lines that `human` makes of it, on stdout."""
    if as_json:
        show_json(value)
        return
    said = human()
    show_lines([said] if isinstance(said, str) else said)


def table(columns: list[str], rows: list[list[str]]) -> list[str]:
    """Rows in columns, as lines that are as wide as they need to be."""
    grid = Table(box=None, pad_edge=False, header_style="")
    for column in columns:
        grid.add_column(column, no_wrap=True)
    for row in rows:
        grid.add_row(*(visible(cell).replace("[", "\\[") for cell in row))
    wide = Console(width=1000, color_system=None)
    with wide.capture() as captured:
        wide.print(grid)
    return [line.rstrip() for line in captured.get().splitlines()]
