"""What a worker says of itself when it attaches."""

from __future__ import annotations

import platform
import secrets
from collections.abc import Mapping
from importlib import metadata

from ..compiler.codegen.version import CODEGEN_VERSION
from ..compiler.target import detect
from .facts import facts_beside, llvm_version
from .messages import PROTOCOL, WorkerHello

_PACKAGES = ("tilewright", "numpy", "llvmlite")


def probe(name: str, labels: Mapping[str, str] | None = None, device: str = "cpu") -> WorkerHello:
    """The facts of this machine and this installation, with a session of its own. Sends nothing. `device`
    says which processors are measured on."""
    hardware = detect()
    return WorkerHello(
        protocol=PROTOCOL,
        name=name,
        session=secrets.token_hex(16),
        hardware_key=hardware.key,
        hardware=hardware.facts | facts_beside() | {"device": device},
        versions=_versions(),
        labels=dict(labels or {}),
    )


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version(), "codegen": CODEGEN_VERSION, "llvm": llvm_version()}
    return versions | {package: metadata.version(package) for package in _PACKAGES}
