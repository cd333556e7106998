"""Every test that SECURITY.md and docs/cases.md name is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_NAMED = re.compile(r"(tests/[\w/]+\.py)?(?:::(test_\w+))?")


def missing(document: Path) -> list[str]:
    found, file = [], ""
    for match in _NAMED.finditer(document.read_text()):
        file = match[1] or file
        text = (ROOT / file).read_text() if file and (ROOT / file).is_file() else None
        if match[1] and text is None:
            found.append(file)
        if match[2] and (text is None or f"def {match[2]}(" not in text):
            found.append(f"{file}::{match[2]}")
    return found


@pytest.mark.parametrize("document", ["SECURITY.md", "docs/cases.md"])
def test_the_tests_that_a_document_names_are_there(document: str) -> None:
    path = ROOT / document
    assert path.read_text().count("tests/") > 20
    assert missing(path) == []
