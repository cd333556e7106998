"""Folders of builders go with them, or with the next one."""

import os
import subprocess
import sys
from pathlib import Path

from tilewright.measure.run_only.folders import folder_of


def test_a_folder_is_there_while_it_is_used_and_gone_afterwards(tmp_path: Path) -> None:
    with folder_of("build-", tmp_path) as folder:
        (folder / "artifact").write_bytes(b"x")
        with folder_of("build-", tmp_path) as other:
            assert folder.exists() and other != folder
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_one_left_is_removed_by_the_next(tmp_path: Path) -> None:
    program = (
        "import os, sys; from pathlib import Path\n"
        "from tilewright.measure.run_only.folders import folder_of\n"
        "with folder_of('build-', Path(sys.argv[1])) as folder:\n"
        "    (folder / 'artifact').write_text('x'); os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    (left,) = tmp_path.iterdir()
    with folder_of("build-", tmp_path) as folder:
        assert not left.exists() and folder.exists()


def test_one_that_has_not_locked_its_folder_yet_keeps_it(tmp_path: Path) -> None:
    young, old = tmp_path / "build-young", tmp_path / "build-old"
    young.mkdir()
    old.mkdir()
    os.utime(old, (0, 0))
    with folder_of("build-", tmp_path):
        assert young.exists() and not old.exists()
