"""The server of the tests is gone with the process that started it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from own_processes import own_children
from postgres_server import PostgresServer

OWNER = """
import sys
from postgres_server import PostgresServer
with PostgresServer() as server:
    print(server._server.pid, server._directory, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_server_whose_owner_is_killed_stops_and_leaves_no_files(how):
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    with owner:
        pid, directory = owner.stdout.readline().split()
        assert (psutil.pid_exists(int(pid)), Path(directory).is_dir()) == (True, True)
        owner.send_signal(how)
        owner.wait()
    give_up = time.monotonic() + 60
    while psutil.pid_exists(int(pid)) or Path(directory).exists():
        assert time.monotonic() < give_up, "it still runs, or its files are there"
        time.sleep(0.05)


def test_the_server_that_tests_share_is_no_child_of_any_of_them():
    with PostgresServer() as server:
        children = psutil.Process().children()
        assert server._server.pid in {child.pid for child in children}
        assert own_children() == []
