"""The processes that a test has started, without the database server that all tests of this process share."""

import contextlib

import psutil

SERVER_FOLDERS = "tw-pg-"
"""How the folders of database servers begin; a server and its watcher have theirs on the command line."""


def own_children(recursive: bool = False) -> list[psutil.Process]:
    """Children of this process, with all that descends from them if `recursive`."""
    direct = [child for child in psutil.Process().children() if not _is_server(child)]
    if not recursive:
        return direct
    below = []
    for child in direct:
        with contextlib.suppress(psutil.NoSuchProcess):
            below += child.children(recursive=True)
    return direct + below


def _is_server(process: psutil.Process) -> bool:
    try:
        return any(SERVER_FOLDERS in word for word in process.cmdline())
    except psutil.Error:
        return False
