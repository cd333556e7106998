"""`tilewright worker`: a machine that measures."""

from __future__ import annotations

from pathlib import Path

import typer

from ..settings import load
from ..worker_logs import configure
from ..worker_run import run_worker
from ..worker_setup import WorkerSetup
from .doctor import doctor
from .exits import CommandError, Exit
from .install_service import install_service
from .options import (
    NO_TOKEN,
    AsJson,
    InsecureHttp,
    LogFormat,
    LogLevel,
    TokenFile,
    Url,
    open_client,
    settings_of,
)
from .output import show, show_json_line, table
from .worker_options import (
    AttachSeconds,
    Batch,
    DeviceOption,
    Labels,
    Name,
    WaitForDevice,
    parse_labels,
)

app = typer.Typer(name="worker", help="Measure candidates on this machine.", no_args_is_help=True)
app.command("doctor")(doctor)
app.command("install-service")(install_service)


@app.command("run")
def run(
    url: Url = None,
    token_file: TokenFile = None,
    name: Name = None,
    label: Labels = None,
    device: DeviceOption = None,
    insecure_http: InsecureHttp = False,
    batch: Batch = None,
    attach_seconds: AttachSeconds = None,
    wait_for_device: WaitForDevice = False,
    log_format: LogFormat = None,
    log_level: LogLevel = None,
    as_json: AsJson = False,
) -> None:
    """Attach to a server and measure until told to stop.

    SIGTERM drains: the candidate that runs is finished, the rest given back. A second one stops at once. Ends
    with 0 drained, 1 nothing can be measured here, 2 cannot reach a server, 3 the token is not enough, 5
    superseded by a newer session of this name, 6 a setting is wrong or the name was removed, 7 the server
    does not speak this version, 8 another worker has the device.
    """
    settings = settings_of(
        url=url,
        token_file=token_file,
        insecure_http=insecure_http,
        worker_name=name,
        worker_labels=parse_labels(label),
        worker_device=device,
        worker_batch=batch,
        worker_attach_seconds=attach_seconds,
        worker_wait_for_device=wait_for_device or None,
        log_format=log_format,
        log_level=log_level,
    )
    setup = WorkerSetup.of(settings)
    if reason := setup.missing_token:
        raise CommandError(reason, Exit.UNAUTHORIZED)
    with open_client(settings) as client, setup.lock() as lock:
        told = configure(settings.log_format, settings.log_level)
        code = run_worker(setup, client.transport, lock, told)
    if as_json:
        show_json_line({"worker": setup.name, "outcome": code.name.lower(), "exit": int(code)})
    raise typer.Exit(int(code))


@app.command("probe")
def show_probe(
    name: Name = None, label: Labels = None, device: DeviceOption = None, as_json: AsJson = False
) -> None:
    """What this machine would say of itself when it attaches. Sends nothing."""
    flags = {"worker_name": name, "worker_labels": parse_labels(label), "worker_device": device}
    settings = load(flags, unused=NO_TOKEN).settings
    setup = WorkerSetup.of(settings)
    setup.device.pin()
    hello = setup.hello().to_json()
    del hello["session"], hello["health"]

    def human() -> list[str]:
        rows = [["name", hello["name"]], ["hardware key", hello["hardware_key"]]]
        rows += [["protocol", str(hello["protocol"])]]
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


def _plain(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value))
    return "unknown" if value is None else str(value)
