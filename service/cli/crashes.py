"""`tilewright crashes`: candidates that took workers with them."""

from __future__ import annotations

from typing import Annotated

import typer

from .exits import CommandError
from .options import AsJson
from .output import say, show, table
from .where import Server, takes

app = typer.Typer(name="crashes", help="Candidates that took workers with them.", no_args_is_help=True)


@app.command("list")
@takes(Server)
def list_crashes(
    hardware: Annotated[str | None, typer.Option(help="Only on this hardware key.")] = None,
    *,
    where: Server,
    as_json: AsJson = False,
) -> None:
    """The newest 500. One that is barred is not run on that hardware until it is cleared."""
    with where.client() as client:
        crashes = client.crashes(hardware)

    def human() -> list[str]:
        rows = [
            [c.candidate, c.hardware[:12], str(c.losses), "barred" if c.barred else "", c.trial or ""]
            for c in crashes
        ]
        return table(["candidate", "hardware", "losses", "", "last trial"], rows)

    show([crash.model_dump() for crash in crashes], as_json, human)


@app.command("clear")
@takes(Server)
def clear_crash(
    candidate: Annotated[str, typer.Argument(help="A candidate, as `crashes list` names it.")],
    hardware: Annotated[
        str | None, typer.Option(help="Only on this hardware key. [default: on all]", show_default=False)
    ] = None,
    *,
    where: Server,
) -> None:
    """Let a candidate run again where workers were lost with it."""
    with where.client() as client:
        known = [c for c in client.crashes(hardware) if c.candidate == candidate]
        if not known:
            raise CommandError(f"no worker was lost with candidate {candidate!r}; see `crashes list`")
        for crash in known:
            client.clear_crash(crash.candidate, crash.hardware)
            say(f"{crash.candidate} may run again on hardware {crash.hardware[:12]}")
