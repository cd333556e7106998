"""The client that awaits does what the one does that waits."""

from __future__ import annotations

import asyncio
import inspect
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from service_harness import HARDWARE, HEX, MATMUL, Api, attach, searched, settle, stored_job

import tilewright
from tilewright.measure.messages import NotATilewright, SourceUnreachable
from tilewright.service.async_client import AsyncClient
from tilewright.service.client import ApiError, Client, InsecureToken


def _public(kind: type) -> dict[str, Any]:
    return {name: value for name, value in vars(kind).items() if not name.startswith("_")}


def test_both_clients_have_the_same_methods_with_the_same_parameters_and_words() -> None:
    one, other = _public(Client), _public(AsyncClient)
    assert set(one) - {"transport"} == set(other)
    with Client("http://127.0.0.1:1") as client:
        awaiting = AsyncClient("http://127.0.0.1:1")
        for name in sorted(set(other) - {"url", "do"}):
            mine, its = getattr(client, name), getattr(awaiting, name)
            assert list(inspect.signature(mine).parameters) == list(inspect.signature(its).parameters), name
            assert mine.__doc__ == its.__doc__ or name == "close"
        asyncio.run(awaiting.close())


def test_it_has_a_name_of_its_own() -> None:
    assert (tilewright.AsyncClient, tilewright.Client) == (AsyncClient, Client)


def test_jobs_are_submitted_followed_waited_for_and_listed(api: Api) -> None:
    async def work() -> tuple[list[str], str, list[str], list[int]]:
        async with AsyncClient(api.url) as client:
            job = await client.submit(MATMUL, trials=5, hardware=HARDWARE)
            api.store.add_event(job.id, "best", '{"seconds": 1.0}')
            threading.Timer(0.3, api.store.cancel_job, [job.id]).start()
            waiting = asyncio.create_task(client.job(job.id, wait=30))
            kinds = [event.kind async for event in client.events(job.id)]
            ids = [one.id async for one in client.jobs()]
            extended = await client.extend(job.id, trials=9)
            return kinds, (await waiting).state, ids, [extended.budget.trials]

    kinds, state, ids, trials = asyncio.run(work())
    assert (kinds[-2:], state, trials) == (["best", "state"], "cancelled", [9])
    assert ids == [job.id for job in api.store.jobs().items]


def test_many_calls_run_side_by_side(api: Api) -> None:
    async def work() -> list[str]:
        async with AsyncClient(api.url) as client:
            jobs = await asyncio.gather(*(client.submit(MATMUL, seed=n) for n in range(8)))
            return [job.id for job in jobs]

    assert sorted(asyncio.run(work())) == sorted(job.id for job in api.store.jobs().items)


def test_trials_are_asked_for_and_told(api: Api) -> None:
    job = searched(api.store, 2, origin="outside")

    async def work() -> list[str]:
        async with AsyncClient(api.url) as client:
            (trial,) = await client.ask(job.id)
            await client.tell(job.id, trial.number, seconds=1e-3)
            return [one.outcome async for one in client.trials(job.id)]

    assert asyncio.run(work()) == ["ok", "pending"]


def test_the_best_schedule_is_remembered_with_its_tag(api: Api) -> None:
    worker = attach(api.store)
    job = searched(api.store, 1)
    settle(api.store, [1e-5], worker)

    async def work() -> list[Any]:
        async with AsyncClient(api.url) as client:
            found = [await client.best(job.workload, job.target, HARDWARE) for _ in range(2)]
            return [*found, await client.best(HEX, HEX, HEX)]

    first, second, none = asyncio.run(work())
    assert (first.seconds, first is second, none) == (1e-5, True, None)


def test_refusals_and_what_does_not_answer_are_the_same_exceptions(api: Api) -> None:
    async def html(request: httpx.Request) -> httpx.Response:
        return httpx.Response(404, html="<p>no</p>")

    async def work() -> None:
        async with AsyncClient(api.url) as client:
            with pytest.raises(ApiError, match="unknown operator"):
                await client.submit({"op": "mathmul"})
        async with AsyncClient("http://127.0.0.1:9") as client:
            with pytest.raises(SourceUnreachable):
                await client.operators()
            with pytest.raises(ConnectionError):
                await client.best(HEX, HEX, HEX)
        async with AsyncClient("http://127.0.0.1:9", handler=httpx.MockTransport(html)) as client:
            with pytest.raises(NotATilewright):
                await client.operators()

    asyncio.run(work())
    with pytest.raises(InsecureToken):
        AsyncClient("http://tune.example", "secret")


def test_an_answer_that_does_not_end_is_given_up_in_time_and_a_long_one_in_bytes() -> None:
    class Endless(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            while True:
                yield b" "
                await asyncio.sleep(0.01)

    class Huge(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            while True:
                yield b" " * (1 << 20)

    async def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/version":
            return httpx.Response(200, json={"service": "tilewright"})
        return httpx.Response(200, stream=Endless() if request.url.path == "/v1/operators" else Huge())

    async def work() -> None:
        handler = httpx.MockTransport(answer)
        async with AsyncClient("http://127.0.0.1:1", handler=handler, timeout=0.3) as client:
            with pytest.raises(
                SourceUnreachable, match=r"no whole answer to GET /v1/operators within 0\.3 s"
            ):
                await client.operators()
        async with AsyncClient("http://127.0.0.1:1", handler=handler, timeout=30) as client:
            with pytest.raises(NotATilewright, match="an answer of more than"):
                await client.workers()

    asyncio.run(work())


def test_what_broke_is_sent_again_under_the_same_key() -> None:
    keys: list[str] = []

    async def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/version":
            return httpx.Response(200, json={"service": "tilewright"})
        keys.append(request.headers["idempotency-key"])
        if len(keys) == 1:
            raise httpx.ReadError("reset")
        return httpx.Response(409, json={"code": "conflict", "detail": "no"})

    async def work() -> None:
        async with AsyncClient("http://127.0.0.1:1", handler=httpx.MockTransport(answer)) as client:
            with pytest.raises(ApiError):
                await client.cancel("job_1")

    asyncio.run(work())
    assert (len(keys), len(set(keys))) == (2, 1)


def test_events_go_on_where_they_broke_off(api: Api) -> None:
    job = stored_job(api.store)
    for _ in range(2):
        api.store.add_event(job.id, "progress", "{}")
    api.store.cancel_job(job.id)
    seen: list[str] = []

    class Breaking(httpx.AsyncByteStream):
        def __init__(self, content: bytes) -> None:
            self._blocks = content.split(b"\n\n")

        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield b"\n\n".join([*self._blocks[:2], self._blocks[2][:10]])
            raise httpx.ReadError("the connection was reset")

    async def breaking(request: httpx.Request) -> httpx.Response:
        answer = await asyncio.to_thread(
            httpx.get, request.url.copy_with(), headers=request.headers, trust_env=False
        )
        if request.url.path.endswith("/events"):
            seen.append(request.headers["last-event-id"])
            if len(seen) == 1:
                return httpx.Response(200, stream=Breaking(answer.content))
        return httpx.Response(answer.status_code, content=answer.content)

    async def work() -> list[int]:
        async with AsyncClient(api.url, handler=httpx.MockTransport(breaking)) as client:
            return [event.seq async for event in client.events(job.id)]

    assert (asyncio.run(work()), seen) == ([1, 2, 3, 4], ["0", "2"])


TYPED = """
from collections.abc import AsyncIterator, Iterator
from typing import assert_type
from tilewright import AsyncClient, Client
from tilewright.service.views import JobView, TokenView

def wait(client: Client) -> None:
    assert_type(client.submit({}, trials=3), JobView)
    assert_type(client.jobs(state="running"), Iterator[JobView])
    client.submit({}, trails=3)

async def await_(client: AsyncClient) -> None:
    assert_type(await client.submit({}, trials=3), JobView)
    assert_type(client.tokens(), AsyncIterator[TokenView])
    assert_type(await client.job("j", wait=1.0), JobView)
    await client.job(3)
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_users_of_both_are_type_checked(tmp_path: Path) -> None:
    program = tmp_path / "typed.py"
    program.write_text(TYPED)
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", program],
        env={**os.environ, "MYPYPATH": str(Path(tilewright.__file__).parents[1])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    told = [line.split(": ", 1)[1] for line in run.stdout.splitlines() if line.startswith("typed.py")]
    assert told == [
        'error: Unexpected keyword argument "trails"; did you mean "trials"?  [call-arg]',
        'error: Argument 1 has incompatible type "int"; expected "str"  [arg-type]',
    ]
