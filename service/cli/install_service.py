"""`tilewright worker install-service`: a worker that systemd runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from ..unit import FOLDER, USER_FOLDER, UnitError, WorkerUnit
from ..worker_setup import WorkerSetup
from .exits import CommandError, Exit
from .options import InsecureHttp, Url, settings_of
from .output import say
from .worker_options import Batch, DeviceOption, Labels, Name, WaitForDevice, parse_labels


def install_service(
    token_file: Annotated[Path, typer.Option("--token-file", help="File with the worker's token.")],
    url: Url = None,
    name: Name = None,
    label: Labels = None,
    device: DeviceOption = None,
    insecure_http: InsecureHttp = False,
    batch: Batch = None,
    wait_for_device: WaitForDevice = False,
    of_user: Annotated[bool, typer.Option("--user", help="For this user's systemd.")] = False,
    write: Annotated[bool, typer.Option("--write", help="Install it instead of printing it.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a unit of that name.")] = False,
) -> None:
    """Print the systemd unit of a worker with these options, or install it with --write.

    The unit starts a worker again that failed, unless its token, a setting or its version was refused, or a
    newer session has its name.
    """
    settings = settings_of(
        url=url,
        insecure_http=insecure_http,
        worker_name=name,
        worker_labels=parse_labels(label),
        worker_device=device,
        worker_batch=batch,
        worker_wait_for_device=wait_for_device or None,
    )
    setup = WorkerSetup.of(settings)
    options = ["--url", settings.url, "--name", setup.name, "--device", settings.worker_device]
    options += [
        word for key, value in settings.worker_labels.items() for word in ("--label", f"{key}={value}")
    ]
    options += ["--batch", str(settings.worker_batch)]
    options += ["--insecure-http"] * settings.insecure_http
    options += ["--wait-for-device"] * settings.worker_wait_for_device
    unit = WorkerUnit(setup.name, _program(), options, token_file.absolute(), of_user)
    try:
        text = unit.text()
    except UnitError as error:
        raise CommandError(str(error), Exit.USAGE) from error
    if not write:
        print(text, end="", flush=True)
        return
    path = _write(unit, text, force)
    control = f"systemctl{' --user' if of_user else ''}"
    say(f"wrote {path}; start it with: {control} daemon-reload && {control} enable --now {path.name}")


def _program() -> str:
    """The program that is running, beside this Python."""
    return str(Path(sys.executable).with_name("tilewright"))


def _write(unit: WorkerUnit, text: str, force: bool) -> Path:
    configuration = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    folder = configuration / USER_FOLDER if unit.of_user else FOLDER
    path = folder / unit.file_name
    try:
        if unit.of_user:
            folder.mkdir(parents=True, exist_ok=True)
        with path.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise CommandError(f"{path} is there already; --force replaces it") from error
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}; as root, or with --user?") from error
    return path
