"""Settings: flag > environment > secret file > config file > default. The one place that reads the
environment.

Every key is also an environment variable with the prefix `TILEWRIGHT_`; `TILEWRIGHT_<KEY>_FILE` names a file
that holds the value, for secrets. `TILEWRIGHT_CONFIG` names a TOML file with the same keys in lower case. An
unknown key is an error wherever it stands, since a misspelt setting that is ignored costs an afternoon.
"""

from __future__ import annotations

import ipaddress
import os
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

PREFIX = "TILEWRIGHT_"
CONFIG_VARIABLE = "TILEWRIGHT_CONFIG"
DEFAULT_PORT = 8470


class SettingsError(Exception):
    """A setting is unknown, unreadable or out of range. The message names the key and where it was said."""


class Settings(BaseSettings):
    """What a deployment may choose. Made by `load`, which alone reads the environment."""

    model_config = SettingsConfigDict(extra="forbid", frozen=True)

    db: str = Field("sqlite:///tilewright.db", description="database of the server and of local commands")
    host: str = Field("127.0.0.1", description="address the server binds; anonymous access needs loopback")
    port: int = Field(DEFAULT_PORT, ge=0, le=65535, description="port the server binds; 0 takes a free one")
    url: str = Field(f"http://127.0.0.1:{DEFAULT_PORT}", description="server that client commands talk to")
    token: SecretStr | None = Field(None, description="bearer token of client and worker commands")
    insecure_http: bool = Field(False, description="send the token over http to a host that is not loopback")
    timeout: float = Field(10.0, gt=0, le=600, description="seconds a client waits for one whole answer")

    max_body_bytes: int = Field(4 << 20, ge=1024, description="largest request body")
    max_json_depth: int = Field(256, ge=8, le=500, description="deepest nesting of a request's JSON")
    max_trials: int = Field(100_000, ge=1, description="largest trial budget of one job")
    worker_wait: float = Field(600.0, gt=0, description="seconds a job waits for a worker of its hardware")
    requests_per_second: float = Field(
        2000.0, ge=0, description="requests a second of one token, or one address without; 0: any number"
    )
    requests_burst: int = Field(4000, ge=1, description="requests that it may make at once after a pause")
    max_unfinished_jobs: int = Field(1000, ge=0, description="unfinished jobs of one token; 0: any number")
    max_queued_trials: int = Field(
        10_000_000, ge=0, description="trials without a result of one token's unfinished jobs; 0: any number"
    )
    drain_seconds: float = Field(
        0.0, ge=0, le=60, description="after SIGTERM, how long /readyz says 503 before no connection is taken"
    )
    log_format: Literal["json", "text"] = Field("text", description="how a server logs to stderr")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="the least that a server logs; debug: every request"
    )
    metrics_open: bool = Field(False, description="let everyone who reaches the server read /metrics")
    retention_days: float = Field(
        0, ge=0, le=36_500, description="days that ended jobs keep all trials; 0 keeps everything"
    )
    max_searches: int = Field(4, ge=1, description="searches that run at the same time")
    runner_silence: float = Field(
        15.0, gt=0, description="seconds of silence after which a search runner is lost and leads no more"
    )
    search_restarts: int = Field(3, ge=0, description="times a search that died is started again")

    lease_items: int = Field(16, ge=1, le=64, description="most candidates of one lease")
    lease_seconds: float = Field(30.0, gt=0, description="time to live of a lease that is not renewed")
    renew_seconds: float = Field(10.0, gt=0, description="how often a worker renews its lease")
    lease_wait: float = Field(20.0, ge=0, le=60, description="longest wait of one lease call")
    build_seconds: float = Field(10.0, gt=0, description="time limit of building one candidate")
    run_seconds: float = Field(10.0, gt=0, description="time limit of checking and timing one candidate")
    memory_bytes: int = Field(2 << 30, ge=1, description="memory limit of one candidate")

    worker_name: str = Field(
        "", max_length=128, description="name of a worker; empty: the host's and device's"
    )
    worker_labels: dict[str, str] = Field(default_factory=dict, description="key=value,… shown with a worker")
    worker_device: str = Field("cpu", description="processors that a worker keeps to itself, as in cpu:0-3,8")
    worker_batch: int = Field(16, ge=1, le=64, description="candidates that a worker leases at a time")
    worker_attach_seconds: float = Field(20.0, ge=0, description="seconds a worker tries to reach the server")
    worker_wait_for_device: bool = Field(False, description="wait for a device that another worker has")
    lock_folder: str = Field("", description="folder of device locks; empty: one that all users share")

    golden_every: int = Field(
        64, ge=0, le=1_000_000, description="candidates between golden kernels; 0: none"
    )
    golden_processes: int = Field(5, ge=0, le=50, description="fresh processes of golden kernels at attach")
    golden_drift: float = Field(0.03, ge=0, le=10, description="least ratio by which a device may drift")
    golden_interval: float = Field(60.0, gt=0, le=86_400, description="seconds between checks in quarantine")

    builder: bool = Field(True, description="build for devices that cannot, while any is attached")
    max_artifact_bytes: int = Field(
        256 << 20, ge=1024, description="largest program or data file for devices that cannot compile"
    )
    artifact_store_bytes: int = Field(
        4 << 30, ge=1024, description="what all programs and data files may come to"
    )

    @field_validator("worker_labels", mode="before")
    @classmethod
    def _read_labels(cls, said: Any) -> Any:
        """Labels of a flag or a file are a list of key=value, those of a variable a comma-separated one."""
        if isinstance(said, str):
            said = [label for label in said.split(",") if label.strip()]
        if not isinstance(said, list | tuple):
            return said
        pairs = [str(label).strip().partition("=") for label in said]
        for key, equals, value in pairs:
            if not key or not equals:
                raise ValueError(f"{key + equals + value!r} is not of the form key=value")
        return {key: value for key, _, value in pairs}

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        # `load` hands in what it read and where from: the settings read nothing behind its back.
        return (init_settings,)

    @property
    def bound_to_loopback(self) -> bool:
        """Whether only this machine can reach a server bound to `host`."""
        return is_loopback(self.host)


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings, and for each key where its value came from (`default`, `flag`, `environment TILEWRIGHT_…`,
    …)."""

    settings: Settings
    sources: Mapping[str, str]


def load(
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    unused: Collection[str] = (),
) -> Loaded:
    """The settings of this process. `flags` are values of the command line, None for a flag not given.

    A secret file is read only where its value counts: not that of an `unused` key, nor of one said otherwise.
    Raises SettingsError that names every wrong key, and where it was said.
    """
    environment = os.environ if environ is None else environ
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    flagged = {k: v for k, v in (flags or {}).items() if v is not None}
    for origin, key, value in (
        *_from_file(environment.get(CONFIG_VARIABLE)),
        *_from_environment(environment, {*flagged, *unused}),
        *(("flag", key, value) for key, value in flagged.items()),
    ):
        values[key] = value
        sources[key] = origin
    try:
        settings = Settings(**values)
    except ValidationError as error:
        raise SettingsError(_explain(error, sources)) from None
    return Loaded(settings, {key: sources.get(key, "default") for key in Settings.model_fields})


def is_loopback(host: str) -> bool:
    """Whether a host name or address means this machine alone. No name is looked up."""
    name = host.strip("[]").lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _from_environment(environ: Mapping[str, str], unread: Collection[str]) -> list[tuple[str, str, str]]:
    """Values of variables and of the files that variables name, but for the files of `unread` keys; the
    variable itself wins over its file."""
    direct: list[tuple[str, str, str]] = []
    files: list[tuple[str, str, str]] = []
    for name, value in sorted(environ.items()):
        if not name.startswith(PREFIX) or name == CONFIG_VARIABLE:
            continue
        key = name.removeprefix(PREFIX).lower()
        if key in Settings.model_fields:
            direct.append((f"environment {name}", key, value))
        elif key.endswith("_file") and key.removesuffix("_file") in Settings.model_fields:
            files.append((name, key.removesuffix("_file"), value))
        else:
            raise SettingsError(f"unknown environment variable {name}; {_known(key)}")
    said = {key for _, key, _ in direct}.union(unread)
    secrets = [
        (f"file {path} of {name}", key, _read_secret(name, path))
        for name, key, path in files
        if key not in said
    ]
    return secrets + direct


def _read_secret(name: str, path: str) -> str:
    try:
        return Path(path).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{name} names {path}, which cannot be read: {_reason(error)}") from error


def _from_file(path: str | None) -> list[tuple[str, str, Any]]:
    if path is None:
        return []
    try:
        document = tomllib.loads(Path(path).read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(
            f"{CONFIG_VARIABLE} names {path}, which cannot be read: {_reason(error)}"
        ) from error
    for key in document:
        if key not in Settings.model_fields:
            raise SettingsError(f"unknown key {key!r} in {path}; {_known(key)}")
    return [(f"config file {path}", key, value) for key, value in document.items()]


def _known(key: str) -> str:
    close = get_close_matches(key.removesuffix("_file"), Settings.model_fields, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    return f"{hint}known keys: {', '.join(Settings.model_fields)}"


def _reason(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


def _explain(error: ValidationError, sources: Mapping[str, str]) -> str:
    lines = []
    for problem in error.errors():
        key = str(problem["loc"][0])
        said = "a secret" if key == "token" else repr(problem["input"])
        lines.append(f"{key}: {problem['msg']}, got {said} ({sources.get(key, 'default')})")
    return "; ".join(lines)
