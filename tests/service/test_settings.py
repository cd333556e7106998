from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.service.settings import Settings, SettingsError, is_loopback, load


def _refusal(environ: dict[str, str], **flags: object) -> str:
    with pytest.raises(SettingsError) as refused:
        load(flags, environ)
    return str(refused.value)


def test_without_anything_said_every_value_is_its_default() -> None:
    loaded = load({}, {})
    assert (loaded.settings, set(loaded.sources.values())) == (Settings(), {"default"})


def test_a_flag_wins_over_the_environment_over_a_file_over_the_default(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("port = 1\nworker_wait = 2.0\nmax_trials = 3\n")
    environ = {
        "TILEWRIGHT_CONFIG": str(config),
        "TILEWRIGHT_WORKER_WAIT": "20",
        "TILEWRIGHT_MAX_TRIALS": "30",
    }
    loaded = load({"max_trials": 300, "host": None}, environ)
    chosen = {key: (getattr(loaded.settings, key), loaded.sources[key]) for key in _LAYERED}
    assert chosen == {
        "port": (1, f"config file {config}"),
        "worker_wait": (20.0, "environment TILEWRIGHT_WORKER_WAIT"),
        "max_trials": (300, "flag"),
        "host": ("127.0.0.1", "default"),
    }


_LAYERED = ("port", "worker_wait", "max_trials", "host")


def test_each_source_wins_over_those_below_it(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('db = "sqlite:///config.db"\n')
    (tmp_path / "secret").write_text("sqlite:///secret.db\n")
    config = {"TILEWRIGHT_CONFIG": str(tmp_path / "config.toml")}
    secret = {**config, "TILEWRIGHT_DB_FILE": str(tmp_path / "secret")}
    variable = {**secret, "TILEWRIGHT_DB": "sqlite:///variable.db"}
    found = [
        load(flags, environ)
        for flags, environ in (
            ({}, {}),
            ({}, config),
            ({}, secret),
            ({}, variable),
            ({"db": "sqlite:///flag.db"}, variable),
        )
    ]
    assert [(one.settings.db, one.sources["db"]) for one in found] == [
        ("sqlite:///tilewright.db", "default"),
        ("sqlite:///config.db", f"config file {tmp_path / 'config.toml'}"),
        ("sqlite:///secret.db", f"file {tmp_path / 'secret'} of TILEWRIGHT_DB_FILE"),
        ("sqlite:///variable.db", "environment TILEWRIGHT_DB"),
        ("sqlite:///flag.db", "flag"),
    ]


def test_a_secret_can_stand_in_a_file(tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text("twt_value\n")
    loaded = load({}, {"TILEWRIGHT_TOKEN_FILE": str(secret)})
    assert loaded.settings.token is not None
    assert (loaded.settings.token.get_secret_value(), loaded.sources["token"]) == (
        "twt_value",
        f"file {secret} of TILEWRIGHT_TOKEN_FILE",
    )


def test_a_token_does_not_show_in_the_settings_text() -> None:
    assert "twt_value" not in repr(load({}, {"TILEWRIGHT_TOKEN": "twt_value"}))


def test_an_unknown_variable_is_refused_with_the_nearest_key() -> None:
    known = ", ".join(Settings.model_fields)
    assert _refusal({"TILEWRIGHT_PROT": "1"}) == (
        f"unknown environment variable TILEWRIGHT_PROT; did you mean port? known keys: {known}"
    )


def test_an_unknown_key_of_a_file_is_refused(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("colour = 1\n")
    known = ", ".join(Settings.model_fields)
    assert _refusal({"TILEWRIGHT_CONFIG": str(config)}) == (
        f"unknown key 'colour' in {config}; known keys: {known}"
    )


def test_a_wrong_value_is_refused_saying_where_it_was_said() -> None:
    assert _refusal({"TILEWRIGHT_PORT": "70000"}) == (
        "port: Input should be less than or equal to 65535, got '70000' (environment TILEWRIGHT_PORT)"
    )


def test_a_secret_file_that_is_not_there_is_refused() -> None:
    assert _refusal({"TILEWRIGHT_TOKEN_FILE": "/nonexistent/token"}) == (
        "TILEWRIGHT_TOKEN_FILE names /nonexistent/token, which cannot be read: No such file or directory"
    )


def test_variables_of_other_programs_are_left_alone() -> None:
    assert load({}, {"PORT": "1", "TILE_PORT": "2"}).settings == Settings()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost", "LOCALHOST."])
def test_loopback_is_known_by_name_and_by_number(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org", "localhost.example.org", ""])
def test_everything_else_is_not_loopback(host: str) -> None:
    assert not is_loopback(host)


def test_every_setting_that_limits_is_in_the_documentation() -> None:
    text = (Path(__file__).parents[2] / "docs" / "service.md").read_text("utf-8")
    named = {
        "TILEWRIGHT_CONFIG",
        "requests_per_second",
        "requests_burst",
        "max_unfinished_jobs",
        "max_queued_trials",
        "max_body_bytes",
        "max_json_depth",
        "metrics_open",
        "log_format",
        "drain_seconds",
    }
    assert {name for name in named if f"`{name}`" not in text} == set()


def test_a_secret_file_whose_value_does_not_count_is_not_read() -> None:
    environment = {"TILEWRIGHT_TOKEN_FILE": "/nonexistent/token"}
    flagged = load({"token": "twt_flag"}, environment)
    said = load({}, environment | {"TILEWRIGHT_TOKEN": "twt_variable"})
    unused = load({}, environment, unused=("token",))
    assert [each.sources["token"] for each in (flagged, said, unused)] == [
        "flag",
        "environment TILEWRIGHT_TOKEN",
        "default",
    ]
