"""The processes that a test has started, without the database server that all tests of this process share."""

import contextlib

import psutil

_SERVER_FOLDERS = "tw-pg-"  # as postgres_server names them, which not all who ask can import


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
        return any(_SERVER_FOLDERS in word for word in process.cmdline())
    except psutil.Error:
        return False
