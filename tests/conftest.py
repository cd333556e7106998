"""What all tests share."""

from __future__ import annotations

import os
import shutil
import tempfile

import pytest

_LOCKS = "TILEWRIGHT_LOCK_FOLDER"


def pytest_configure(config: pytest.Config) -> None:
    """Workers of tests that run at the same time do not share the machine's locks: those of one process of
    tests are its own."""
    os.environ[_LOCKS] = tempfile.mkdtemp(prefix="tilewright-test-locks-")


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(os.environ.pop(_LOCKS), ignore_errors=True)
