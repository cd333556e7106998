"""docker-compose.yml, Dockerfile and prometheus.yml, as far as they can be held to the program without
containers."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from tilewright.service.cli import app
from tilewright.service.settings import DEFAULT_PORT, load

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
DOCKERFILE = (ROOT / "Dockerfile").read_text()
OURS = {name: service for name, service in COMPOSE["services"].items() if "build" in service}
PASSWORD = {"TILEWRIGHT_DB_PASSWORD": "secret"}


def _substituted(value: str) -> str:
    return re.sub(r"\$\{(\w+):\?[^}]*\}", lambda match: PASSWORD[match[1]], value)


def _check_command(words: list[str]) -> None:
    """Parse a command line as the program would, without running it. Raises the program's usage error."""
    command: Any = get_command(app)
    while hasattr(command, "commands"):
        command, words = command.commands[words[0]], words[1:]
    command.make_context("tilewright", words)


def _command_of_the_image() -> list[str]:
    (said,) = re.findall(r"^CMD (\[.*\])$", DOCKERFILE, re.MULTILINE)
    return list(json.loads(said))


def test_the_compose_file_follows_the_compose_specification() -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"),
            str(ROOT / "docker-compose.yml"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "ok -- validation done\n")


def test_the_roles_are_those_of_the_scaled_form() -> None:
    assert list(COMPOSE["services"]) == ["db", "migrate", "api", "search", "worker", "prometheus"]
    assert {name: s.get("profiles") for name, s in OURS.items() if s.get("profiles")} == {
        "worker": ["worker"]
    }
    assert {s["image"] for s in OURS.values()} == {f"tilewright:{version('tilewright')}"}


@pytest.mark.parametrize("service", OURS)
def test_the_command_of_a_service_is_one_of_the_program(service: str) -> None:
    _check_command(OURS[service]["command"])


def test_the_command_of_the_image_is_one_of_the_program() -> None:
    _check_command(_command_of_the_image())


def test_a_command_that_the_program_does_not_know_is_found_out() -> None:
    with pytest.raises(Exception, match="No such option: --proceses"):
        _check_command(["serve", "--proceses", "2"])


@pytest.mark.parametrize("service", OURS)
def test_the_environment_of_a_service_holds_settings_that_the_program_takes(
    service: str, tmp_path: Path
) -> None:
    environment = {name: _substituted(str(value)) for name, value in OURS[service]["environment"].items()}
    if "TILEWRIGHT_TOKEN_FILE" in environment:
        token = tmp_path / "token"
        token.write_text("twk_x")
        environment["TILEWRIGHT_TOKEN_FILE"] = str(token)
    # An unknown name or a wrong value raises.
    load(None, environment)


def test_the_image_says_settings_that_the_program_takes() -> None:
    said = dict(pair.split("=", 1) for pair in re.findall(r"TILEWRIGHT_\w+=\S+", DOCKERFILE))
    assert load(None, said).settings.host == "0.0.0.0"


def test_the_database_is_the_one_that_is_made() -> None:
    made = {name: _substituted(value) for name, value in COMPOSE["services"]["db"]["environment"].items()}
    url = load(None, {"TILEWRIGHT_DB": _substituted(OURS["api"]["environment"]["TILEWRIGHT_DB"])}).settings.db
    assert url == (
        f"postgresql://{made['POSTGRES_USER']}:{made['POSTGRES_PASSWORD']}@db:5432/{made['POSTGRES_DB']}"
    )
    assert {OURS[name]["environment"]["TILEWRIGHT_DB"] for name in ("migrate", "api", "search")} == {
        OURS["api"]["environment"]["TILEWRIGHT_DB"]
    }


def test_ports_match_wherever_they_are_said() -> None:
    api = OURS["api"]
    (published,) = api["ports"]
    (target,) = yaml.safe_load((ROOT / "deploy" / "prometheus.yml").read_text())["scrape_configs"]
    (discovered,) = target["dns_sd_configs"]
    command = OURS["worker"]["command"]
    assert {
        int(api["environment"]["TILEWRIGHT_PORT"]),
        int(published.rpartition(":")[2]),
        discovered["port"],
        int(command[command.index("--url") + 1].rpartition(":")[2]),
        *(int(port) for port in re.findall(r"EXPOSE (\d+)", DOCKERFILE)),
        *(int(port) for port in re.findall(r"127\.0\.0\.1:(\d+)/readyz", DOCKERFILE)),
    } == {DEFAULT_PORT}
    assert discovered["names"] == ["api"]


def test_nothing_starts_before_the_migration_is_done() -> None:
    done = {"migrate": {"condition": "service_completed_successfully"}}
    assert OURS["migrate"]["depends_on"] == {"db": {"condition": "service_healthy"}}
    assert (OURS["api"]["depends_on"], OURS["search"]["depends_on"]) == (done, done)
    assert OURS["migrate"]["restart"] == "no"


def test_a_container_has_time_to_end_in_order() -> None:
    from tilewright.service.api_processes import _GRACE_SECONDS

    assert int(OURS["api"]["stop_grace_period"].rstrip("s")) > _GRACE_SECONDS


def test_the_image_runs_as_a_user_without_rights_and_holds_no_compiler() -> None:
    final = DOCKERFILE.rpartition("\nFROM ")[2]
    assert "\nUSER tilewright\n" in final
    assert final.index("\nUSER tilewright\n") < final.index("\nENTRYPOINT")
    assert re.findall(r"\b(?:gcc|g\+\+|clang|build-essential)\b", DOCKERFILE) == []


def test_files_that_compose_mounts_are_there_or_said_to_be_made() -> None:
    mounted = [v.split(":")[0] for v in COMPOSE["services"]["prometheus"]["volumes"] if v.startswith("./")]
    assert [path for path in mounted if not (ROOT / path).is_file()] == []
    assert "worker.token" in (ROOT / "docs" / "operations.md").read_text()
