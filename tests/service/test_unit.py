"""The systemd unit of a worker."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.measure.exits import Exit
from tilewright.service.cli import run
from tilewright.service.unit import UnitError, WorkerUnit

OPTIONS = ["--url", "https://tune.example", "--name", "rpi4-07", "--label", "board=rpi 4"]
TOKEN = Path("/etc/tilewright/token")
UNIT = WorkerUnit("rpi4-07", "/opt/tilewright/bin/tilewright", OPTIONS, TOKEN)

CONFINED = """\
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

GOLDEN = f"""\
[Unit]
Description=Tilewright worker rpi4-07
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
Type=exec
LoadCredential=token:/etc/tilewright/token
ExecStart=/opt/tilewright/bin/tilewright worker run --url https://tune.example --name rpi4-07 \
--label "board=rpi 4" --token-file %d/token
Restart=on-failure
RestartSec=10
RestartPreventExitStatus=3 5 6 7 64
# SIGTERM lets the worker finish its candidate and give the others back.
KillMode=mixed
TimeoutStopSec=60
# A candidate that takes too much memory is ended, and its worker goes on.
OOMPolicy=continue
LimitCORE=0
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
{CONFINED}
[Install]
WantedBy=multi-user.target
"""


def test_the_unit_of_a_worker_of_the_system() -> None:
    assert UNIT.text() == GOLDEN


def test_the_unit_of_a_users_worker_reads_the_token_itself_and_asks_for_no_privileges() -> None:
    unit = WorkerUnit(
        "rig", "/home/me/bin/tilewright", ["--url", "http://127.0.0.1:8470"], TOKEN, of_user=True
    )
    lines = unit.text().splitlines()
    assert (
        "ExecStart=/home/me/bin/tilewright worker run --url http://127.0.0.1:8470 --token-file "
        "/etc/tilewright/token" in lines
    )
    assert lines[-1] == "WantedBy=default.target"
    assert not [
        line for line in lines if line.startswith(("LoadCredential", "DynamicUser", "Protect", "Private"))
    ]
    assert unit.text().endswith(f"LimitCORE=0\n{CONFINED}\n[Install]\nWantedBy=default.target\n")


def test_what_starting_again_does_not_heal_is_not_started_again() -> None:
    final = {int(code) for line in GOLDEN.splitlines() if "Prevent" in line for code in line[25:].split()}
    assert final >= {Exit.UNAUTHORIZED, Exit.SUPERSEDED, Exit.VERSION_REFUSED}
    assert not final & {Exit.FAILED, Exit.UNREACHABLE, Exit.DEVICE_BUSY}


def test_compiled_code_may_run() -> None:
    assert "MemoryDenyWriteExecute" not in GOLDEN


@pytest.mark.parametrize(
    ("word", "written"),
    [
        ("plain", "plain"),
        ("a b", '"a b"'),
        ("100%", '"100%%"'),
        ("$HOME", '"$$HOME"'),
        ('say "x"', '"say \\"x\\""'),
        ("back\\slash", '"back\\\\slash"'),
        ("", '""'),
        (";", '";"'),
    ],
)
def test_a_word_means_itself_to_systemd(word: str, written: str) -> None:
    text = WorkerUnit("rig", "/bin/tilewright", ["--name", word], TOKEN).text()
    assert f"ExecStart=/bin/tilewright worker run --name {written} --token-file %d/token\n" in text


@pytest.mark.parametrize("word", ["a\nExecStartPre=/bin/sh", "a\x00b", "a\x1bb"])
def test_a_word_cannot_add_a_line(word: str) -> None:
    for unit in (
        WorkerUnit("rig", "/bin/tilewright", ["--name", word], TOKEN),
        WorkerUnit(word, "/bin/tilewright", [], TOKEN),
        WorkerUnit("rig", "/bin/tilewright", [], Path("/tmp") / word.replace("/", "")),
    ):
        with pytest.raises(UnitError, match="characters that cannot stand in a unit"):
            unit.text()


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("rpi4-07", "tilewright-worker-rpi4-07.service"),
        ("../../etc/passwd", "tilewright-worker-etc-passwd.service"),
        ("größe 1", "tilewright-worker-gr-e-1.service"),
        ("...", "tilewright-worker.service"),
    ],
)
def test_a_units_file_is_named_after_the_worker_and_stays_in_its_folder(name: str, file: str) -> None:
    assert WorkerUnit(name, "/bin/tilewright", [], TOKEN).file_name == file


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
@pytest.mark.parametrize("of_user", [False, True])
def test_systemd_finds_nothing_wrong_with_a_unit(tmp_path: Path, of_user: bool) -> None:
    unit = WorkerUnit("rig", sys.executable, OPTIONS, TOKEN, of_user)
    file = tmp_path / unit.file_name
    file.write_text(unit.text())
    command = ["systemd-analyze", "verify", "--man=no", *(["--user"] if of_user else []), str(file)]
    verified = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": str(tmp_path)},
    )
    complaints = [line for line in verified.stderr.splitlines() if unit.file_name in line]
    assert (verified.returncode, complaints) == (0, []), verified.stderr


def test_installing_prints_the_unit_of_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    told = ["--token-file", "/etc/tilewright/token", "--url", "https://tune.example"]
    code = run(
        ["worker", "install-service", *told, "--name", "rig", "--label", "rack=3", "--wait-for-device"]
    )
    program = Path(sys.executable).with_name("tilewright")
    line = (
        f"ExecStart={program} worker run --url https://tune.example --name rig --device cpu --label rack=3 "
        "--batch 16 --wait-for-device --token-file %d/token"
    )
    assert (code, line in capsys.readouterr().out.splitlines()) == (0, True)


def test_installing_writes_a_users_unit_once_and_says_what_comes_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    command = ["worker", "install-service", "--token-file", "/t", "--name", "rig", "--user", "--write"]
    codes = [run(command), run(command), run([*command, "--force"])]
    file = tmp_path / "systemd/user/tilewright-worker-rig.service"
    said = capsys.readouterr().err.splitlines()
    assert (codes, file.read_text().startswith("[Unit]\n")) == ([0, 1, 0], True)
    assert said[:2] == [
        f"wrote {file}; start it with: systemctl --user daemon-reload && systemctl --user enable --now "
        f"{file.name}",
        f"tilewright: {file} is there already; --force replaces it",
    ]
