from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from service_harness import ENVIRONMENT


def test_a_search_whose_database_is_gone_says_so_in_words(tmp_path: Path) -> None:
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "tilewright.service.search_child"),
            *("--db", f"sqlite:///{tmp_path}/gone.db", "--job", "job_1", "--epoch", "1"),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        env=ENVIRONMENT,
    )
    assert (ended.returncode, ended.stderr) == (69, f"{tmp_path}/gone.db: there is no such database\n")
