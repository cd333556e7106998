"""What a worker says of itself when it attaches."""

from __future__ import annotations

import platform
import secrets
from collections.abc import Mapping
from importlib import metadata

from ..compiler.codegen.version import CODEGEN_VERSION
from ..compiler.target import detect
from .messages import PROTOCOL, WorkerHello

_PACKAGES = ("tilewright", "numpy", "llvmlite")


def probe(name: str, labels: Mapping[str, str] | None = None) -> WorkerHello:
    """The facts of this machine and this installation, with a session of its own. Sends nothing."""
    hardware = detect()
    return WorkerHello(
        protocol=PROTOCOL,
        name=name,
        session=secrets.token_hex(16),
        hardware_key=hardware.key,
        hardware=hardware.facts,
        versions=_versions(),
        labels=dict(labels or {}),
    )


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version(), "codegen": CODEGEN_VERSION}
    return versions | {package: metadata.version(package) for package in _PACKAGES}
