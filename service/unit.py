"""The systemd unit of a worker, as text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["UnitError", "WorkerUnit"]

FOLDER = Path("/etc/systemd/system")
USER_FOLDER = Path("systemd/user")
"""Where units of the system are, and, in a user's configuration, those of a user."""

_FINAL = "3 5 6 7 64"
"""Exit codes that starting again does not heal: the token, a newer session of the name, a wrong setting, the
protocol, wrong usage."""

_PLAIN = re.compile(r"[\w@+=:,./-]+", re.ASCII)

_CONFINED = """\
# Candidates are native code that this process compiles: memory must become executable. Each of them runs in a
# child with limits of its own, which needs no more privileges than these.
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictNamespaces=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM
"""

_OF_SYSTEM = """\
DynamicUser=yes
CapabilityBoundingSet=
ProtectSystem=strict
ProtectHome=read-only
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectClock=yes
ProtectHostname=yes
PrivateDevices=yes
PrivateTmp=yes
# The locks by which the workers of this machine share its processors.
ReadWritePaths=/run/lock
"""


class UnitError(ValueError):
    """A word cannot stand in a unit."""


@dataclass(frozen=True, slots=True)
class WorkerUnit:
    """A worker as a service: of the system, with the token as a credential that only it can read, or of a
    user.

    `options` are those of `worker run`, but for the token's file.
    """

    name: str
    program: str
    options: Sequence[str]
    token_file: Path
    of_user: bool = False

    @property
    def file_name(self) -> str:
        """Its name for systemd, of the worker's name with other characters than letters and digits as `-`."""
        plain = re.sub(r"[^A-Za-z0-9_.]+", "-", self.name).strip("-.")
        return f"tilewright-worker-{plain}.service" if plain else "tilewright-worker.service"

    def text(self) -> str:
        """The whole unit. Raises UnitError."""
        token = _quoted(str(self.token_file)) if self.of_user else "%d/token"
        words = [self.program, "worker", "run", *self.options]
        command = " ".join([*map(_quoted, words), "--token-file", token])
        credential = "" if self.of_user else f"LoadCredential=token:{_path(self.token_file)}\n"
        return (
            "[Unit]\n"
            f"Description=Tilewright worker {_words(self.name)}\n"
            "Wants=network-online.target\n"
            "After=network-online.target\n"
            "StartLimitIntervalSec=0\n"
            "\n"
            "[Service]\n"
            "Type=exec\n"
            f"{credential}"
            f"ExecStart={command}\n"
            "Restart=on-failure\n"
            "RestartSec=10\n"
            f"RestartPreventExitStatus={_FINAL}\n"
            "# SIGTERM lets the worker finish its candidate and give the others back.\n"
            "KillMode=mixed\n"
            "TimeoutStopSec=60\n"
            "# A candidate that takes too much memory is ended, and its worker goes on.\n"
            "OOMPolicy=continue\n"
            "LimitCORE=0\n"
            f"{'' if self.of_user else _OF_SYSTEM}"
            f"{_CONFINED}"
            "\n"
            "[Install]\n"
            f"WantedBy={'default' if self.of_user else 'multi-user'}.target\n"
        )


def _quoted(word: str) -> str:
    """A word of a command line, as systemd reads it: `%` and `$` stand for themselves."""
    _check(word)
    plain = word.replace("%", "%%").replace("$", "$$")
    if _PLAIN.fullmatch(word):
        return plain
    escaped = plain.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _words(text: str) -> str:
    _check(text)
    return text.replace("%", "%%")


def _path(path: Path) -> str:
    _check(str(path))
    if " " in str(path) or ":" in str(path):
        raise UnitError(
            f"the token's file {str(path)!r} has a space or a colon in its name, which a unit cannot say"
        )
    return str(path).replace("%", "%%")


def _check(word: str) -> None:
    if not word.isprintable():
        raise UnitError(f"{word!r} has characters that cannot stand in a unit")
