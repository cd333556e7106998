"""Options of the commands that are about a worker of this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from .exits import CommandError, Exit

Name = Annotated[
    str | None,
    typer.Option(
        help="The worker's name; by default the host's. [TILEWRIGHT_WORKER_NAME]", show_default=False
    ),
]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--label", help="key=value, shown with the worker. [TILEWRIGHT_WORKER_LABELS]", show_default=False
    ),
]
DeviceOption = Annotated[
    str | None,
    typer.Option(
        "--device",
        help="The processors to measure on, such as cpu:0-3; by default all. [TILEWRIGHT_WORKER_DEVICE]",
        show_default=False,
    ),
]
Batch = Annotated[
    int | None,
    typer.Option(
        min=1, max=64, help="Candidates of one lease, 16. [TILEWRIGHT_WORKER_BATCH]", show_default=False
    ),
]
AttachSeconds = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        help="How long to try to reach the server at first, 20. [TILEWRIGHT_WORKER_ATTACH_SECONDS]",
        show_default=False,
    ),
]
WaitForDevice = Annotated[
    bool,
    typer.Option(
        "--wait-for-device",
        help="Wait for a device that another worker has. [TILEWRIGHT_WORKER_WAIT_FOR_DEVICE]",
    ),
]


def parse_labels(labels: list[str] | None) -> dict[str, str] | None:
    if labels is None:
        return None
    parsed: dict[str, str] = {}
    for label in labels:
        key, equals, value = label.partition("=")
        if not equals or not key:
            raise CommandError(f"--label {label!r} is not of the form key=value", Exit.USAGE)
        parsed[key] = value
    return parsed
