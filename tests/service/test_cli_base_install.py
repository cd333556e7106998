"""Commands as processes: with the base install alone, and as part of a pipe."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence

from service_harness import Api, stored_job


def _process(arguments: Sequence[str], **environment: str) -> subprocess.CompletedProcess[str]:
    """A command as a user runs it."""
    return subprocess.run(
        [sys.executable, "-c", "from tilewright.service.cli import main; main()", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(p for p in sys.path if p), **environment},
    )


_BASE_ALONE = """
import sys

EXTRAS = {"fastapi", "starlette", "uvicorn", "sqlalchemy", "alembic", "xgboost", "sklearn"}

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in EXTRAS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refuse())
import tilewright.service.cli, tilewright.service.client, tilewright.service.connect
import tilewright.service.settings, tilewright.service.worker_client
from tilewright.service.cli import run
sys.exit(run(sys.argv[1:]))
"""


def _with_the_base_install(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _BASE_ALONE, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(p for p in sys.path if p)},
    )


def test_client_commands_and_settings_work_with_the_base_install_alone(api: Api) -> None:
    job = stored_job(api.store)
    shown = _with_the_base_install("jobs", "show", job.id, "--url", api.url, "--json")
    config = _with_the_base_install("config", "show", "--json")
    assert (shown.returncode, json.loads(shown.stdout)["id"], config.returncode) == (0, job.id, 0)


def test_a_database_without_its_extra_is_refused_naming_it() -> None:
    made = _with_the_base_install("token", "create", "--scope", "worker")
    assert (made.returncode, made.stderr) == (
        1,
        "tilewright: a database needs alembic, which is not installed: pip install 'tilewright[store]'\n",
    )


def test_a_server_without_its_extra_is_refused_naming_it() -> None:
    served = _with_the_base_install("serve", "--port", "0")
    assert (served.returncode, served.stderr.endswith("pip install 'tilewright[server]'\n")) == (1, True)


def test_reading_only_the_start_of_the_output_is_no_error(api: Api) -> None:
    for _ in range(3):
        stored_job(api.store)
    program = f"{sys.executable} -c 'from tilewright.service.cli import main; main()' jobs list --json"
    piped = subprocess.run(
        ["/bin/sh", "-c", f"{program} --url {api.url} | true"],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(p for p in sys.path if p)},
    )
    assert piped.stderr == ""


def test_the_program_exits_with_the_code_of_its_command() -> None:
    refused = _process(["jobs", "list", "--url", "http://127.0.0.1:1"])
    assert (refused.returncode, refused.stdout) == (2, "")
