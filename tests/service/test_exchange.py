"""Records of best-known schedules as lines, from one store to another, with the real compiler."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import rfc8785

from tilewright.compiler import CODEGEN_VERSION, ir, te
from tilewright.compiler.build import build
from tilewright.compiler.space import default_schedule
from tilewright.compiler.target import Target, detect
from tilewright.db import Store, check, open_store
from tilewright.db.records import NewJob, NewTrial, Settlement
from tilewright.service.schedule_lines import digest_of, export_lines, import_lines
from tilewright.service.schedule_views import BadLineView, ImportView
from tilewright.service.wiring import CompilerParser
from tilewright.tuner.candidate import candidate_key

TARGET = Target.parse("llvm")
HERE = detect()


def plus(rows: int, by: float = 1.0) -> ir.PrimFunc:
    a = te.placeholder((rows, 20), "float32", name="A")
    return te.create_prim_func([a, te.compute((rows, 20), lambda i, j: a[i, j] + by, name="B")], name="plus")


def record(store: Store, func: ir.PrimFunc, seconds: float, *, number: int = 0) -> str:
    """A job that has measured one schedule of a program; its trial."""
    trace = default_schedule(func, TARGET).trace
    workload = ir.workload_key(func)
    store.put_workload(workload, func.name, rfc8785.dumps(ir.to_json(func)).decode(), ir.script(func))
    store.put_target(TARGET.key, rfc8785.dumps(TARGET.to_json()).decode())
    store.put_hardware(HERE.key, rfc8785.dumps(HERE.facts).decode())
    job = store.create_job(NewJob(workload, TARGET.key, HERE.key, 8, None, 0, "random", 0.0, "local", "{}"))
    epoch = store.begin_search(job.id)
    key = candidate_key(workload, trace.canonical_json(), TARGET.key, CODEGEN_VERSION)
    text = rfc8785.dumps(trace.to_json()).decode()
    store.add_trials(job.id, epoch, [NewTrial(number, 0, key, "s", text, b"", 1, 0)])
    settled = Settlement(
        seconds=seconds, samples=(seconds, seconds), error=0.5, codegen_version=CODEGEN_VERSION
    )
    trial = store.settle_local(job.id, epoch, number, settled)
    store.finish_job(job.id, epoch, "completed", "")
    return trial.id


Opener = Callable[[str], Store]


@pytest.fixture
def opener(tmp_path: Path) -> Iterator[Opener]:
    opened: list[Store] = []

    def open_one(name: str) -> Store:
        opened.append(open_store(f"sqlite:///{tmp_path}/{name}.db"))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


def lines_of(store: Store) -> list[str]:
    return list(export_lines(store))


def taken(store: Store, lines: list[str]) -> ImportView:
    return import_lines(store, CompilerParser(), lines)


def changed(line: str, change: Callable[[dict[str, Any]], object]) -> str:
    """The line with something else in it, and the digest that goes with it."""
    said = json.loads(line)
    change(said)
    return rfc8785.dumps(said | {"digest": digest_of(said)}).decode()


def test_records_go_from_one_store_to_another_and_are_built_there(opener: Opener) -> None:
    a, b = opener("a"), opener("b")
    funcs = [plus(rows) for rows in (8, 12, 16)]
    for func in funcs:
        record(a, func, 1e-3)
    lines = lines_of(a)
    assert lines == lines_of(a) and len(lines) == 3
    assert taken(b, lines) == ImportView(best=3)
    assert lines_of(b) == lines
    source = build(funcs[1], schedules=b).schedule_source
    assert (source.kind, source.record.imported, source.record.confirmed) == ("exact", True, False)
    assert source.reason == "measured for this workload, target and hardware by another store"


def test_the_same_records_have_no_effect_again_nor_at_home(opener: Opener) -> None:
    a, b = opener("a"), opener("b")
    record(a, plus(8), 1e-3)
    lines = lines_of(a)
    assert taken(b, [*lines, *lines]) == ImportView(best=1, known=1)
    assert taken(b, lines) == ImportView(known=1)
    assert taken(a, lines_of(b)) == ImportView(known=1)
    assert len(b.jobs().items) == 1


def test_a_database_of_imported_records_is_in_order(opener: Opener, tmp_path: Path) -> None:
    a, b = opener("a"), opener("b")
    record(a, plus(8), 1e-3)
    assert taken(b, lines_of(a)) == ImportView(best=1)
    assert check(f"sqlite:///{tmp_path}/b.db") == []
    with b._database.write() as conn:  # type: ignore[attr-defined]
        conn.exec_driver_sql("UPDATE trials SET origin = ''")
    (problem,) = check(f"sqlite:///{tmp_path}/b.db")
    assert problem.rule == "a success has the attempt that settled it"


@pytest.mark.parametrize(("theirs", "became"), [(0.5e-3, "challenger"), (2e-3, "slower")])
def test_what_another_store_has_timed_replaces_nothing_by_itself(
    opener: Opener, theirs: float, became: str
) -> None:
    a, b = opener("a"), opener("b")
    record(a, plus(8), theirs)
    own = record(b, plus(8), 1e-3)
    with b._database.write() as conn:  # type: ignore[attr-defined]
        conn.exec_driver_sql("UPDATE trials SET candidate_key = 'other'")
    assert taken(b, lines_of(a)) == ImportView(**{became: 1})
    best = b.best(ir.workload_key(plus(8)), TARGET.key, HERE.key)
    assert best is not None and best.trial == own
    assert (best.challenger is not None) is (became == "challenger")


FAULTS: dict[str, Callable[[dict[str, Any]], object]] = {
    "hardware is missing": lambda said: said.pop("hardware"),
    "schedule.error is missing": lambda said: said["schedule"].pop("error"),
    "workload.program is missing": lambda said: said["workload"].pop("program"),
    "workload.program": lambda said: said["workload"]["program"].pop("params"),
    "version 2 of tilewright_schedule is not known; this program reads 1": lambda said: said.update(
        tilewright_schedule=2
    ),
    "schedule.trace: does not apply: version 9 is not known": lambda said: said["schedule"]["trace"].update(
        version=9
    ),
    "schedule.trace: does not apply: unknown step 'sing'": lambda said: said["schedule"]["trace"][
        "steps"
    ].append({"do": "sing"}),
    "seconds: must be above 0, not -1": lambda said: said["schedule"].update(seconds=-1.0),
    "error: is 3 tolerances: its output was wrong": lambda said: said["schedule"].update(error=3),
    "schedule.samples must be an array": lambda said: said["schedule"].update(samples="x"),
    "target.key: this program makes it": lambda said: said["target"].update(key="0" * 64),
    "hardware.key: this program makes it": lambda said: said["hardware"]["facts"].update(vendor="Other"),
    "target.description: ": lambda said: said["target"]["description"].update(kind="abacus"),
}
"""What is done to a record, by the beginning of the reason for which it is refused."""


@pytest.mark.parametrize(("reason", "fault"), FAULTS.items())
def test_a_bad_line_is_skipped_by_number_and_the_others_are_taken(
    opener: Opener, reason: str, fault: Callable[[dict[str, Any]], object]
) -> None:
    a, b = opener("a"), opener("b")
    for rows in (8, 12):
        record(a, plus(rows), 1e-3)
    first, second = lines_of(a)
    got = taken(b, [changed(first, fault), second])
    (bad,) = got.refused
    assert (got.best, bad.number) == (1, 1)
    assert bad.reason.startswith(reason)


def test_a_line_that_is_no_json_or_was_changed_is_named(opener: Opener) -> None:
    a, b = opener("a"), opener("b")
    record(a, plus(8), 1e-3)
    (line,) = lines_of(a)
    bent = line.replace('"seconds":0.001', '"seconds":0.0001')
    got = taken(b, ["{", "[]", '{"tilewright_schedule": NaN}', bent, "", "[" * 100_000])
    digest = digest_of(json.loads(bent))
    assert [bad.number for bad in got.refused] == [1, 2, 3, 4, 6]
    assert got.refused[1] == BadLineView(number=2, reason="is no JSON object")
    assert got.refused[3].reason == (
        f"digest: the line is another than was written: expected {digest}, found {json.loads(line)['digest']}"
    )


def test_old_and_new_records_are_counted_apart_and_an_untouched_one_keeps_its_bytes(opener: Opener) -> None:
    a, b = opener("a"), opener("b")
    for rows in range(1, 11):
        record(a, plus(rows), 1e-3)
    lines = lines_of(a)
    later = [changed(line, lambda said: said.update(tilewright_schedule=2)) for line in lines[:5]]
    got = taken(b, [*later, *lines[5:]])
    assert (got.best, len(got.refused)) == (5, 5)
    assert lines_of(b) == lines[5:]


def test_of_ten_good_lines_one_without_a_field_and_one_with_more_eleven_are_taken(opener: Opener) -> None:
    a, b = opener("a"), opener("b")
    for rows in range(1, 13):
        record(a, plus(rows), 1e-3)
    lines = lines_of(a)
    lines[3] = changed(lines[3], lambda said: said["schedule"].pop("codegen"))
    lines[7] = changed(lines[7], lambda said: said["schedule"].update(mood="good"))
    got = taken(b, lines)
    assert got == ImportView(best=11, refused=[BadLineView(number=4, reason="schedule.codegen is missing")])
    assert lines[7] in lines_of(b)


def test_records_of_machines_that_this_build_does_not_know_are_inert(opener: Opener) -> None:
    a, b = opener("a"), opener("b")
    record(a, plus(8), 1e-3)
    (line,) = lines_of(a)

    def strange(said: dict[str, Any]) -> None:
        from tilewright.compiler.target import Hardware

        facts = said["hardware"]["facts"] | {"architecture": "abacus64", "vendor": "Beads"}
        said["hardware"] = {"key": Hardware.of(facts).key, "facts": facts}

    assert taken(b, [changed(line, strange), line]) == ImportView(best=2)
    assert build(plus(8), schedules=b).schedule_source.kind == "exact"
    assert len({one.schedule.hardware for one in b.kept().items}) == 2


def test_a_record_that_was_exported_after_it_was_timed_again_is_another(opener: Opener) -> None:
    a, b = opener("a"), opener("b")
    record(a, plus(8), 1e-3)
    (line,) = lines_of(a)
    quicker = changed(line, lambda said: said["schedule"].update(seconds=0.5e-3))
    assert taken(b, [line]) == ImportView(best=1)
    assert taken(b, [quicker]) == ImportView(slower=1)  # the same schedule, not a challenger of itself


def test_a_damaged_record_is_left_out_of_an_export(opener: Opener) -> None:
    a = opener("a")
    for rows in (8, 12):
        record(a, plus(rows), 1e-3)
    with a._database.write() as conn:  # type: ignore[attr-defined]
        conn.exec_driver_sql("UPDATE trials SET trace = '{' WHERE rowid = 1")
    assert len(lines_of(a)) == 1


def test_records_that_were_retired_here_do_not_come_back(opener: Opener) -> None:
    a, b = opener("a"), opener("b")
    record(a, plus(8), 1e-3)
    lines = lines_of(a)
    taken(b, lines)
    best = b.best(ir.workload_key(plus(8)), TARGET.key, HERE.key)
    assert best is not None
    b.retire(best.trial, "wrong")
    (again,) = [changed(lines[0], lambda said: said["provenance"].update(trial="elsewhere.1"))]
    assert taken(b, [again]).refused == [BadLineView(number=1, reason="trial: its schedule was retired here")]
    assert b.best(best.workload, best.target, best.hardware) is None
