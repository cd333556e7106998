from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest
from service_harness import ENVIRONMENT, stored_job

from tilewright.db import Conflict, JobOver, StaleSearch, Store
from tilewright.service import search_child
from tilewright.tuner import run


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


@pytest.mark.parametrize(
    ("error", "ended"),
    [
        (StaleSearch("it is searched by epoch 2 now"), (0, "")),
        (JobOver("it is cancelled"), (0, "")),
        (Conflict("trial 3 exists with another candidate"), (1, "trial 3 exists with another candidate\n")),
    ],
)
def test_only_a_search_that_nobody_needs_any_more_ends_without_a_word(
    store: Store,
    url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: Conflict,
    ended: tuple[int, str],
) -> None:
    def searches(*_: object) -> NoReturn:
        raise error

    monkeypatch.setattr(run, "run_search", searches)
    job = stored_job(store)
    status = search_child.main(["--db", url, "--job", job.id, "--epoch", "1"])
    assert (status, capsys.readouterr().err) == ended
