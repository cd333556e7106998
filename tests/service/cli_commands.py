"""How tests call the command line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Capture = pytest.CaptureFixture[str]
Command = Callable[..., tuple[int, str, str]]
"""Runs a command: its exit code, stdout and stderr."""
