from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from tilewright.service.cli.options import AsJson
from tilewright.service.cli.where import Place, Server, takes


def _run(kind: type[Server], *arguments: str) -> tuple[int, object]:
    """The exit code, and what a command of this kind was called with."""
    app = typer.Typer()
    seen: list[object] = []

    @app.command()
    @takes(kind)
    def command(
        name: Annotated[str, typer.Argument()], *, where: Server, count: int = 1, as_json: AsJson = False
    ) -> None:
        seen.append((name, where, count, as_json))

    code = CliRunner().invoke(app, arguments).exit_code
    return code, seen[0] if seen else None


@pytest.mark.parametrize("kind", [Server, Place])
def test_a_command_is_handed_where_it_looks_beside_its_own_options(kind: type[Server]) -> None:
    said = ("--count", "3", "w1", "--url", "http://h", "--token-file", "t", "--insecure-http", "--json")
    assert _run(kind, *said) == (0, ("w1", kind("http://h", Path("t"), True), 3, True))
    assert _run(kind, "w1") == (0, ("w1", kind(), 1, False))


def test_a_command_that_looks_into_databases_too_takes_one_and_others_do_not() -> None:
    said = ("w1", "--db", "sqlite:///x.db")
    assert _run(Place, *said) == (0, ("w1", Place(db="sqlite:///x.db"), 1, False))
    assert _run(Server, *said) == (2, None)
