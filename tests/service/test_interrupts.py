"""Ctrl-C at any moment of a command: one line, and 130."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest
from service_harness import ENVIRONMENT

PROGRAM = [sys.executable, "-m", "tilewright.service.command"]


@pytest.mark.parametrize("after", ["import tilewright.service.command", "import httpx", "import typer"])
def test_an_interrupt_while_the_program_loads_is_one_line_and_130(after: str) -> None:
    """`after`: the module whose import is interrupted, by a finder that the program does not know of."""
    module = after.split()[-1].split(".")[-1]
    code = (
        "import os, signal, sys\n"
        "from tilewright.service.command import main\n"
        "class Interrupts:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.split('.')[-1] == {module if module != 'command' else 'cli'!r}:\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupts())\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "--version"], capture_output=True, text=True, timeout=60, env=ENVIRONMENT
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "tilewright: interrupted\n")


def test_an_interrupt_while_a_command_waits_is_one_line_and_130(tmp_path: object) -> None:
    """The address is one at which nobody answers a connection."""
    command = [*PROGRAM, "jobs", "list", "--url", "http://192.0.2.1:9"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        _, words = process.communicate(timeout=30)
    assert (process.returncode in (130, 2), words.count("\n"), "Traceback" in words) == (True, 1, False)
