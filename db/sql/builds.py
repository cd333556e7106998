"""Builds: which artifacts are wanted, who makes them, and what came of it."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, Row, delete, func, or_, select, update

from ..build_records import BuildCounts, BuildItem, BuildKind, BuildResult
from ..build_store import MAX_BUILD_ITEMS, MAX_LOST_BUILDERS
from ..checks import check_int, check_json, check_seconds, check_text, check_word
from ..errors import InvalidValue, LeaseLost, NotFound, StoreFull
from ..words import FAILURE_KINDS
from .clock import now_of
from .digest import sha256_of
from .part import Part, new_id, upsert
from .run_only import DATA, PROGRAM, built_for, fail_unbuildable, of_data, of_program, runs_only, wanted
from .tables import artifacts, builds, jobs, targets, trials, workloads

_IN_USE_SECONDS = 3600.0
_TOUCH_SECONDS = 60.0
_LOST = "{losses} builders were lost while they made it"


class BuildPart(Part):
    def claim_builds(self, builder: str, max_items: int, ttl: float) -> list[BuildItem]:
        check_text("builder", builder)
        check_int("max_items", max_items, 1)
        check_seconds("ttl", ttl)
        most = min(max_items, MAX_BUILD_ITEMS)
        with self._database.write() as conn:
            now = now_of(conn)
            _sweep(conn, now)
            taken = []
            for kind, subject, seed, row in _wanted_builds(conn, most):
                granted = _take(conn, builder, kind, subject, seed, now, ttl)
                if granted is not None:
                    taken.append(_item(granted, row))
            return taken

    def renew_builds(self, builder: str, builds_: Sequence[tuple[str, int]], ttl: float) -> None:
        check_seconds("ttl", ttl)
        with self._database.write() as conn:
            now = now_of(conn)
            for build, attempt in builds_:
                held = builds.c.id == build, builds.c.attempt == attempt, builds.c.builder == builder
                mine = (*held, builds.c.state == "started", builds.c.expires_at > now)
                conn.execute(update(builds).where(*mine).values(expires_at=now + ttl))

    def settle_build(self, builder: str, build: str, attempt: int, result: BuildResult) -> None:
        _check_result(result)
        with self._database.write() as conn:
            row = conn.execute(select(builds).where(builds.c.id == build).with_for_update()).one_or_none()
            if row is None:
                raise NotFound("build", build)
            if row.attempt != attempt or row.builder != builder:
                raise LeaseLost(f"build {build} was granted again after attempt {attempt}")
            if row.state in ("done", "failed"):
                if (row.artifact, row.failure_kind) != (result.artifact, result.failure_kind):
                    raise LeaseLost(f"attempt {attempt} of build {build} was settled with another result")
                return
            if result.artifact is not None and _size_of(conn, result.artifact) is None:
                raise InvalidValue("artifact", f"{result.artifact} was not put before")
            now = now_of(conn)
            values = {name: getattr(result, name) for name in BuildResult.__slots__}
            state = "failed" if result.artifact is None else "done"
            settled = update(builds).where(builds.c.id == build).values(state=state, ended_at=now, **values)
            conn.execute(settled)
            if state == "failed":
                fail_unbuildable(conn, runs_only(), now)

    def release_builds(self, builder: str) -> int:
        with self._database.write() as conn:
            held = builds.c.builder == builder, builds.c.state == "started"
            return conn.execute(update(builds).where(*held).values(state="lost")).rowcount

    def put_artifact(self, sha256: str, data: bytes, most_bytes: int) -> None:
        if sha256_of(data) != sha256:
            raise InvalidValue("sha256", f"is not that of the {len(data)} bytes, which is {sha256_of(data)}")
        with self._database.write() as conn:
            now = now_of(conn)
            if _size_of(conn, sha256) is not None:
                conn.execute(update(artifacts).where(artifacts.c.sha256 == sha256).values(used_at=now))
                return
            _make_room(conn, most_bytes - len(data), now)
            new = upsert(conn, artifacts).values(
                sha256=sha256, size=len(data), data=data, created_at=now, used_at=now
            )
            conn.execute(new.on_conflict_do_nothing(index_elements=["sha256"]))

    def artifact(self, sha256: str) -> bytes:
        with self._database.read() as conn:
            row = conn.execute(
                select(artifacts.c.data, artifacts.c.used_at).where(artifacts.c.sha256 == sha256)
            ).one_or_none()
            now = now_of(conn)
        if row is None:
            raise NotFound("artifact", sha256)
        if now - row.used_at > _TOUCH_SECONDS:
            with self._database.write() as conn:
                conn.execute(update(artifacts).where(artifacts.c.sha256 == sha256).values(used_at=now))
        return bytes(row.data)

    def built_for(self, kinds: Collection[str]) -> set[str]:
        with self._database.read() as conn:
            return built_for(conn, kinds)

    def build_counts(self) -> BuildCounts:
        with self._database.read() as conn:
            rows = conn.execute(select(builds.c.state, func.count().label("n")).group_by(builds.c.state))
            counted = {row.state: int(row.n) for row in rows}
            total = conn.execute(select(func.coalesce(func.sum(artifacts.c.size), 0))).scalar_one()
        started, done, failed = (counted.get(state, 0) for state in ("started", "done", "failed"))
        return BuildCounts(started, done, failed, int(total))


def _check_result(result: BuildResult) -> None:
    if (result.artifact is None) == (result.failure_kind is None):
        raise InvalidValue("artifact", "is given or a failure is, and never both")
    if result.failure_kind is not None:
        check_word("failure_kind", str(result.failure_kind), FAILURE_KINDS)
    check_text("failure_message", result.failure_message, 64 << 10, empty=True)
    check_json("failure_detail", result.failure_detail)
    check_seconds("build_seconds", result.build_seconds, zero=True)


def _sweep(conn: Connection, now: float) -> None:
    """Grants that expired go back; what took too many builders with it has failed."""
    late = builds.c.state == "started", builds.c.expires_at <= now
    lost = update(builds).where(*late).values(state="lost", losses=builds.c.losses + 1)
    if not conn.execute(lost).rowcount:
        return
    hopeless = builds.c.state == "lost", builds.c.losses >= MAX_LOST_BUILDERS
    failed = (
        update(builds)
        .where(*hopeless)
        .values(
            state="failed",
            failure_kind="build_error",
            failure_message=_LOST.format(losses=MAX_LOST_BUILDERS),
            ended_at=now,
        )
    )
    if conn.execute(failed).rowcount:
        fail_unbuildable(conn, runs_only(), now)


def _wanted_builds(conn: Connection, most: int) -> Iterator[tuple[BuildKind, str, int, Row[Any]]]:
    """What nobody makes yet, data first: each with a trial that waits for it."""
    left = most
    kinds: tuple[tuple[BuildKind, Any, Any], ...] = (
        ("data", DATA, of_data()),
        ("program", PROGRAM, of_program()),
    )
    for kind, build, of_trial in kinds:
        seen: set[tuple[str, int]] = set()
        query = (
            select(trials, jobs.c.workload, workloads.c.program, targets.c.description)
            .join_from(trials, jobs, trials.c.job == jobs.c.id)
            .join(workloads, jobs.c.workload == workloads.c.key)
            .join(targets, jobs.c.target == targets.c.key)
            .join(build, of_trial, isouter=True)
            .where(wanted(runs_only()), or_(build.c.id.is_(None), build.c.state == "lost"))
            .order_by(jobs.c.seq, trials.c.number)
            .limit(4 * most)
        )
        for row in conn.execute(query).all():
            subject = (row.workload, row.input_seed) if kind == "data" else (row.candidate_key, 0)
            if subject not in seen and left > 0:
                seen.add(subject)
                left -= 1
                yield kind, *subject, row


def _take(
    conn: Connection, builder: str, kind: BuildKind, subject: str, seed: int, now: float, ttl: float
) -> Row[Any] | None:
    """The row of a build that is this builder's from now on; None where another was faster."""
    new = upsert(conn, builds).values(
        id=new_id("build"),
        kind=kind,
        subject=subject,
        seed=seed,
        state="started",
        attempt=1,
        losses=0,
        builder=builder,
        expires_at=now + ttl,
        failure_message="",
        failure_detail="{}",
        build_seconds=0.0,
        created_at=now,
    )
    again = new.on_conflict_do_update(
        index_elements=["kind", "subject", "seed"],
        set_={
            "state": "started",
            "attempt": builds.c.attempt + 1,
            "builder": builder,
            "expires_at": now + ttl,
        },
        where=builds.c.state == "lost",
    )
    return conn.execute(again.returning(builds)).one_or_none()


def _item(build: Row[Any], trial: Row[Any]) -> BuildItem:
    is_data = build.kind == "data"
    return BuildItem(
        build=build.id,
        attempt=build.attempt,
        kind=build.kind,
        program=trial.program,
        description="" if is_data else trial.description,
        trace="" if is_data else trial.trace,
        input_seed=trial.input_seed,
    )


def _size_of(conn: Connection, sha256: str) -> int | None:
    return conn.execute(select(artifacts.c.size).where(artifacts.c.sha256 == sha256)).scalar_one_or_none()


def _make_room(conn: Connection, most: int, now: float) -> None:
    """Forget the artifacts used longest ago, with their builds, until the rest is at most so many bytes."""
    total = int(conn.execute(select(func.coalesce(func.sum(artifacts.c.size), 0))).scalar_one())
    idle = artifacts.c.used_at < now - _IN_USE_SECONDS
    query = select(artifacts.c.sha256, artifacts.c.size).where(idle).order_by(artifacts.c.used_at)
    for row in conn.execute(query).all() if total > most else ():
        if total <= most:
            break
        conn.execute(delete(builds).where(builds.c.artifact == row.sha256))
        conn.execute(delete(artifacts).where(artifacts.c.sha256 == row.sha256))
        total -= row.size
    if total > most:
        raise StoreFull(
            f"artifacts have {total} bytes, none of which is old enough to be forgotten; "
            "allow more with artifact_store_bytes"
        )
