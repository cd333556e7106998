"""`tilewright worker doctor`: what keeps a worker from measuring here."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import typer

from ...measure.exits import Exit as WorkerExit
from ..doctor import Finding, Step, Trouble, Warned, examine, exit_of_findings
from ..doctor_machine import MachineSteps
from ..doctor_network import NetworkSteps
from ..settings import Loaded, SettingsError, load
from ..worker_setup import WorkerSetup
from .exits import CommandError, Exit
from .options import AsJson, InsecureHttp, TokenFile, Url, flags_of
from .output import say, show_json_line, show_lines
from .worker_options import DeviceOption, Labels, Name, WaitForDevice, parse_labels

_SHOWN = ("url", "token", "insecure_http", "timeout", "lock_folder")
_MARKS = {"ok": "ok     ", "warning": "warning", "failed": "FAILED ", "skipped": "skipped"}


def doctor(
    url: Url = None,
    token_file: TokenFile = None,
    name: Name = None,
    label: Labels = None,
    device: DeviceOption = None,
    insecure_http: InsecureHttp = False,
    wait_for_device: WaitForDevice = False,
    as_json: AsJson = False,
) -> None:
    """Try every step of attaching a worker, and say what is wrong with the first that fails.

    Attaches nothing. Ends with 0, or with what `worker run` would end with.
    """
    more = {
        "worker_name": name,
        "worker_labels": parse_labels(label),
        "worker_device": device,
        "worker_wait_for_device": wait_for_device or None,
    }
    findings = []
    for finding in _findings(url, token_file, insecure_http, more):
        findings.append(finding)
        if not as_json:
            first, *more_of_it = f"{finding.name}: {finding.detail}".split("\n")
            show_lines([f"{_MARKS[finding.status]}  {first}", *(f"    | {line}" for line in more_of_it)])
    code = exit_of_findings(findings)
    if as_json:
        show_json_line({"steps": [finding.to_json() for finding in findings], "exit": code})
    else:
        say("a worker can attach" if code == 0 else f"a worker would end with {code}")
    raise typer.Exit(code)


def _findings(
    url: str | None, token_file: Path | None, insecure_http: bool, more: Mapping[str, Any]
) -> Iterator[Finding]:
    try:
        loaded = load(flags_of(url=url, token_file=token_file, insecure_http=insecure_http, **more))
        setup = WorkerSetup.of(loaded.settings)
    except (SettingsError, CommandError) as error:
        yield Finding("settings", "failed", str(error), Exit.SETTINGS)
        return
    settings = setup.settings
    token = settings.token
    setup.device.pin()
    network = NetworkSteps(
        settings.url,
        None if token is None else token.get_secret_value(),
        settings.insecure_http,
        settings.timeout,
        setup.name,
    )
    machine = MachineSteps(setup)
    steps = [
        Step("settings", lambda: _settings(loaded)),
        Step("token", lambda: _token(setup, token_file or _file_of(loaded))),
    ]
    first, *rest = machine.steps()
    with closing(network), closing(machine):
        yield from examine([*steps, first, *network.steps(), *rest])


def _settings(loaded: Loaded) -> str:
    names = [n for n in loaded.sources if n in _SHOWN or n.startswith("worker_")]
    said = {n: "********" if n == "token" else getattr(loaded.settings, n) for n in names}
    return ", ".join(
        f"{n}={said[n]} ({loaded.sources[n]})" for n in names if loaded.sources[n] != "default" or n == "url"
    )


def _file_of(loaded: Loaded) -> Path | None:
    """The file that a variable names for the token."""
    kind, _, rest = loaded.sources["token"].partition(" ")
    return Path(rest.rpartition(" of ")[0]) if kind == "file" else None


def _token(setup: WorkerSetup, file: Path | None) -> str | Warned:
    if reason := setup.missing_token:
        raise Trouble(reason, WorkerExit.UNAUTHORIZED)
    if file is None:
        return "given by value"
    mode = stat.S_IMODE(os.stat(file).st_mode)
    words = f"read from {file}, mode {mode:o}"
    return Warned(f"{words}: others may read it, let it be 600") if mode & 0o077 else words
