"""`tilewright worker`: a machine that measures."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Annotated

import typer

from ...measure.messages import SourceUnreachable
from ..worker_client import WorkerClient
from .exits import CommandError, Exit
from .options import AsJson, InsecureHttp, TokenFile, Url, open_client, settings_of
from .output import say, show, show_json_line, table

app = typer.Typer(name="worker", help="Measure candidates on this machine.", no_args_is_help=True)

Name = Annotated[
    str | None, typer.Option(help="The worker's name. [default: the host's]", show_default=False)
]
Labels = Annotated[
    list[str] | None, typer.Option("--label", help="key=value, shown with the worker.", show_default=False)
]


@app.command("run")
def run(
    url: Url = None,
    token_file: TokenFile = None,
    name: Name = None,
    label: Labels = None,
    insecure_http: InsecureHttp = False,
    batch: Annotated[int, typer.Option(min=1, max=64, help="Candidates of one lease.")] = 16,
    attach_seconds: Annotated[
        float, typer.Option(min=0.0, help="How long to try to reach the server at first.")
    ] = 20.0,
    as_json: AsJson = False,
) -> None:
    """Attach to a server and measure until told to stop.

    SIGTERM drains: the candidate that runs is finished, the rest given back. A second one stops at once. Ends
    with 0 drained, 2 cannot reach a server, 3 the token is not enough, 5 superseded by a newer session of
    this name, 7 the server does not speak this version.
    """
    from ...measure.errors import MeasureError
    from ...measure.patience import Patience
    from ...measure.probe import probe
    from ...measure.runner import Runner
    from ...measure.worker import run as work

    settings = settings_of(url=url, token_file=token_file, insecure_http=insecure_http)
    if settings.token is None or not settings.token.get_secret_value().strip():
        raise CommandError(
            "a worker needs a token: make one with `tilewright token create --scope worker` where the "
            "server's database is, and name its file with --token-file or TILEWRIGHT_TOKEN_FILE"
            + ("; the one that is set is empty" if settings.token is not None else ""),
            Exit.UNAUTHORIZED,
        )
    with open_client(settings) as client:
        try:
            client.transport.handshake()
        except SourceUnreachable as error:
            say(f"{error}; trying for {attach_seconds:g} s")
        hello = probe(name or _host_name(), _parse_labels(label or []))
        try:
            with Runner() as runner:
                code = work(
                    WorkerClient(client.transport),
                    runner,
                    hello,
                    batch=batch,
                    patience=Patience(attach=attach_seconds),
                    say=say,
                )
        except MeasureError as error:
            raise CommandError(f"nothing can be measured here: {error}") from error
    if as_json:
        show_json_line({"worker": hello.name, "outcome": code.name.lower(), "exit": int(code)})
    raise typer.Exit(int(code))


@app.command("probe")
def show_probe(name: Name = None, label: Labels = None, as_json: AsJson = False) -> None:
    """What this machine would say of itself when it attaches. Sends nothing."""
    from ...measure.probe import probe

    hello = probe(name or _host_name(), _parse_labels(label or [])).to_json()
    del hello["session"]

    def human() -> str:
        rows = [["name", hello["name"]], ["hardware key", hello["hardware_key"]]]
        rows += [[f"hardware {key}", _plain(value)] for key, value in hello["hardware"].items()]
        rows += [[f"version {key}", value] for key, value in hello["versions"].items()]
        rows += [[f"label {key}", value] for key, value in hello["labels"].items()]
        return table(["fact", "value"], rows)

    show(hello, as_json, human)


@app.command("runner-script")
def show_runner_script() -> None:
    """Print the program that measures on a device without tilewright: one file for Python 3.9 alone."""
    from ...measure import run_only

    print(Path(run_only.__file__).with_name("runner.py").read_text("utf-8"), end="")


@app.command("list")
def list_workers(
    url: Url = None,
    token_file: TokenFile = None,
    insecure_http: InsecureHttp = False,
    as_json: AsJson = False,
) -> None:
    """The workers that a server knows."""
    with open_client(settings_of(url=url, token_file=token_file, insecure_http=insecure_http)) as client:
        workers = client.workers()

    def human() -> str:
        rows = [
            [w.name, w.state, w.hardware[:12], str(w.facts.get("model_name") or ""), w.reason]
            for w in workers
        ]
        return table(["name", "state", "hardware", "model", "reason"], rows)

    show([w.model_dump() for w in workers], as_json, human)


def _host_name() -> str:
    return platform.node() or "worker"


def _parse_labels(labels: list[str]) -> dict[str, str]:
    parsed: dict[str, str] = {}
    for label in labels:
        key, equals, value = label.partition("=")
        if not equals or not key:
            raise CommandError(f"--label {label!r} is not of the form key=value", Exit.USAGE)
        parsed[key] = value
    return parsed


def _plain(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value))
    return "unknown" if value is None else str(value)
