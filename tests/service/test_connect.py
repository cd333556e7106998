"""What `connect` makes of an address: a client or a store."""

from __future__ import annotations

from pathlib import Path

import pytest
from service_harness import (
    HEX,
    Api,
)

from tilewright.service.client import Client
from tilewright.service.connect import connect


def test_connect_to_a_server_gives_its_client(api: Api) -> None:
    source = connect(api.url)
    assert isinstance(source, Client)
    with source:
        assert source.best(HEX, HEX, HEX) is None


def test_connect_to_a_database_gives_its_store(tmp_path: Path) -> None:
    with connect(f"sqlite:///{tmp_path}/a.db") as source:
        assert source.best(HEX, HEX, HEX) is None


def test_connect_to_something_else_is_refused_with_what_is_right() -> None:
    with pytest.raises(ValueError) as refused:
        connect("tilewright.db")
    assert str(refused.value) == (
        "'tilewright.db' is neither a database nor a server; "
        "expected sqlite:///tilewright.db, postgresql://user:password@host:port/database or http://host:port"
    )


def test_connect_to_postgresql_gives_its_store(postgres_url: str) -> None:
    with connect(postgres_url) as source:
        assert source.best(HEX, HEX, HEX) is None


def test_connect_does_not_show_the_password_of_what_it_refuses() -> None:
    with pytest.raises(ValueError) as refused:
        connect("mysql://tuner:hunter2@db.example/tuner")
    assert str(refused.value).startswith("'mysql://tuner:***@db.example/tuner' is neither a database")
