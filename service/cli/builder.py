"""`tilewright builder`: a machine that builds for devices that cannot."""

from __future__ import annotations

import platform
from typing import Annotated

import typer

from ...measure.messages import SourceUnreachable
from .exits import CommandError, Exit
from .options import AsJson, InsecureHttp, TokenFile, Url, open_client, settings_of
from .output import say, show_json_line

app = typer.Typer(name="builder", help="Build for devices that have no compiler.", no_args_is_help=True)


@app.command("run")
def run(
    url: Url = None,
    token_file: TokenFile = None,
    name: Annotated[
        str | None, typer.Option(help="The builder's name. [default: the host's]", show_default=False)
    ] = None,
    insecure_http: InsecureHttp = False,
    attach_seconds: Annotated[
        float, typer.Option(min=0.0, help="How long to try to reach the server at first.")
    ] = 20.0,
    as_json: AsJson = False,
) -> None:
    """Take builds from a server until told to stop; needs a token of scope builder.

    SIGTERM drains: what is being built is handed in, the rest given back. Ends with 0 drained, 2 cannot reach
    a server, 3 the token is not enough, 7 the server does not speak this version.
    """
    from ...compiler.codegen.version import CODEGEN_VERSION
    from ...measure.errors import MeasureError
    from ...measure.patience import Patience
    from ...measure.run_only.builder import run as work
    from ...measure.run_only.workbench import Workbench
    from ..builder_client import BuilderClient

    settings = settings_of(url=url, token_file=token_file, insecure_http=insecure_http)
    if settings.token is None or not settings.token.get_secret_value().strip():
        raise CommandError(
            "a builder needs a token: make one with `tilewright token create --scope builder` where the "
            "server's database is, and name its file with --token-file or TILEWRIGHT_TOKEN_FILE",
            Exit.UNAUTHORIZED,
        )
    with open_client(settings) as client:
        try:
            client.transport.handshake()
        except SourceUnreachable as error:
            say(f"{error}; trying for {attach_seconds:g} s")
        source = BuilderClient(client.transport, name or platform.node() or "builder", CODEGEN_VERSION)
        try:
            with Workbench() as bench:
                code = work(source, bench, patience=Patience(attach=attach_seconds), say=say)
        except MeasureError as error:
            raise CommandError(f"nothing can be built here: {error}") from error
    if as_json:
        show_json_line({"outcome": code.name.lower(), "exit": int(code)})
    raise typer.Exit(int(code))
