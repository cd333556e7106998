"""Best-known schedules of a server, with the real compiler on both sides: builds, and the clients' verbs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from service_harness import FakeDispatcher, served
from test_best_served import computes
from test_exchange import HERE, TARGET, plus, record

import tilewright as tw
from tilewright.compiler import ir
from tilewright.compiler.ir.structure import structure
from tilewright.db import Store
from tilewright.service import best_lookup, exchange
from tilewright.service.app import create_app
from tilewright.service.settings import Settings
from tilewright.service.wiring import CompilerParser

KEY = ir.workload_key(plus(12)), TARGET.key, HERE.key


@pytest.fixture
def server(store: Store) -> Iterator[str]:
    """Its URL."""
    stopping = threading.Event()
    app = create_app(store, Settings(), FakeDispatcher(), CompilerParser(), stopping)
    with served(app) as url:
        yield url
        stopping.set()


@pytest.fixture
def client(server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[tw.Client]:
    monkeypatch.setattr(best_lookup, "BEST_SECONDS", 60.0)  # a busy machine may take long
    with tw.Client(server) as opened:
        yield opened


def elsewhere(store: Store) -> None:
    """What was measured on this machine was measured on another of its family."""
    with store._database.write() as conn:  # type: ignore[attr-defined]
        conn.exec_driver_sql(f"INSERT INTO hardware SELECT '{'e' * 64}', facts, 0 FROM hardware")
        for table in ("jobs", "schedules"):
            conn.exec_driver_sql(f"UPDATE {table} SET hardware = '{'e' * 64}'")


def test_a_build_takes_what_the_server_knows_for_this_machine(store: Store, client: tw.Client) -> None:
    row = record(store, plus(12), 1e-3)
    lib = tw.build(plus(12), schedules=client)
    source = lib.schedule_source
    assert (source.kind, source.record.trial, computes(lib)) == ("exact", row, True)


def test_a_build_is_given_what_is_of_the_family_where_that_is_allowed(
    store: Store, client: tw.Client
) -> None:
    record(store, plus(12), 1e-3)
    elsewhere(store)
    assert tw.build(plus(12), schedules=client).schedule_source.kind == "default"
    lib = tw.build(plus(12), schedules=client, allow=("same_family",))
    assert (lib.schedule_source.kind, lib.schedule_source.record.hardware) == ("same_family", "e" * 64)
    assert computes(lib)


def test_a_build_is_given_a_related_workloads_schedule_where_that_is_allowed(
    store: Store, client: tw.Client
) -> None:
    record(store, plus(12), 1e-3)
    store.put_structure(ir.workload_key(plus(12)), structure(plus(12))[0])
    assert tw.build(plus(16), schedules=client, allow=("same_family",)).schedule_source.kind == "default"
    lib = tw.build(plus(16), schedules=client, allow=("same_family", "transferred"))
    assert lib.schedule_source.kind == "transferred" and computes(lib, 16)
    assert "(12 for 16)" in lib.schedule_source.reason


def test_a_build_reports_what_does_not_apply_and_the_server_retires_it(
    store: Store, client: tw.Client
) -> None:
    row = record(store, plus(12), 1e-3)
    with store._database.write() as conn:  # type: ignore[attr-defined]
        conn.exec_driver_sql("""UPDATE trials SET trace = '{"version": 1, "steps": [{"do": "sing"}]}'""")
    lib = tw.build(plus(12), schedules=client)
    assert lib.schedule_source.kind == "default" and computes(lib)
    (gone,) = tw.explain(plus(12), client).retired
    assert gone.trial == row and gone.reason.startswith("unknown step 'sing'")


def test_a_client_pins_freezes_and_retires_and_a_build_does_as_it_is_told(
    store: Store, client: tw.Client
) -> None:
    row = record(store, plus(12), 1e-3)

    def built(freeze: str | None = None) -> tuple[str, str]:
        source = tw.build(plus(12), schedules=client, freeze=freeze).schedule_source
        return source.kind, source.reason

    exact = built()
    assert client.pin(*KEY, row, "numbers drift").trial == row
    assert built() == ("exact", f"trial {row} is pinned by anonymous: numbers drift")
    client.pin(*KEY, None)
    assert built() == ("default", "the default schedule is pinned by anonymous")
    assert [pin.trial for pin in client.pins()] == [None]
    assert (client.unpin(*KEY), client.unpin(*KEY)) == (True, False)
    assert built() == exact
    assert client.freeze("release-1", "before the fair").count == 1
    assert [one.name for one in client.freezes()] == ["release-1"] and client.changed_since("release-1") == []
    assert built("release-1")[0] == "exact"
    assert client.retire(row, "wrong on Mondays").outcome == "retired"
    assert [one.frozen for one in client.changed_since("release-1")] == [row]
    assert built()[0] == built("release-1")[0] == "default"
    assert (client.unfreeze("release-1"), client.unfreeze("release-1")) == (True, False)


def test_the_client_that_awaits_does_the_same(store: Store, server: str) -> None:
    row = record(store, plus(12), 1e-3)

    async def work() -> list[object]:
        async with tw.AsyncClient(server) as client:
            said: list[object] = [(await client.pin(*KEY, row, "drift")).trial]
            best = await client.best(*KEY)
            said += [best is not None and best.reason, [pin.note for pin in await client.pins()]]
            said += [await client.unpin(*KEY), await client.unpin(*KEY)]
            said += [(await client.freeze("r")).count, await client.changed_since("r")]
            said += [await client.unfreeze("r"), await client.unfreeze("r")]
            lines = [line async for line in client.export_lines()]
            return [*said, len(lines), (await client.import_lines(lines)).known]

    pinned = f"trial {row} is pinned by anonymous: drift"
    assert asyncio.run(work()) == [row, pinned, ["drift"], True, False, 1, [], True, False, 1, 1]


def test_more_records_than_one_answer_may_have_go_from_server_to_server(
    store: Store, client: tw.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Page by page, and none is read whole beyond the client's bound."""
    for rows in range(1, 131):
        record(store, plus(rows), 1e-3)
    whole = client.transport.request("GET", "/v1/schedules/export")
    monkeypatch.setattr(exchange, "_MOST_BYTES", len(whole.content) * 9 // 10)
    lines = list(client.export_lines())
    assert "".join(line + "\n" for line in lines) == whole.text and len(lines) == 130
    with pytest.raises(tw.service.client.NotATilewright, match="more than"):
        client.transport.request("GET", "/v1/schedules/export")
    assert client.import_lines(lines).known == 130
