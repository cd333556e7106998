"""What tests of several folders share: a PostgreSQL server, databases on it, and a folder of device locks."""

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from postgres_server import PostgresServer

# Before NumPy is loaded: where several processes share the CPUs, threads of linear algebra wait for one
# another most of the time, and small matrices take several times as long.
for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

# The background job of a shell ignores Ctrl-C, and so would all that it starts: a terminal's does not.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """The server of this process of pytest. It does not wait for the disk."""
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_blank(postgres: PostgresServer) -> str:
    """A database with the schema and no rows; copying it is faster than migrating."""
    from tilewright.db import open_store

    name = postgres.database()
    open_store(postgres.url(name)).close()
    return name


@pytest.fixture
def postgres_url(postgres: PostgresServer, postgres_blank: str) -> Iterator[str]:
    """A database of the test's own, with the schema and no rows."""
    name = postgres.database(postgres_blank)
    yield postgres.url(name)
    postgres.drop(name)


@pytest.fixture
def empty_postgres_url(postgres: PostgresServer) -> Iterator[str]:
    """A database of the test's own, without tables."""
    name = postgres.database()
    yield postgres.url(name)
    postgres.drop(name)


_LOCKS = "TILEWRIGHT_LOCK_FOLDER"


def pytest_configure(config: pytest.Config) -> None:
    """Workers of tests that run at the same time do not share the machine's locks: those of one process of
    tests are its own."""
    os.environ[_LOCKS] = tempfile.mkdtemp(prefix="tilewright-test-locks-")


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(os.environ.pop(_LOCKS), ignore_errors=True)
