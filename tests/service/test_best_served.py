"""What a build gets from a store, and what it never gets."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from service_harness import ENVIRONMENT
from test_exchange import HERE, TARGET, plus, record

import tilewright as tw
from tilewright.compiler import CODEGEN_VERSION, ir
from tilewright.compiler.runtime import Module
from tilewright.db import Store, open_store
from tilewright.tuner.candidate import candidate_key

KEY = ir.workload_key(plus(12)), TARGET.key, HERE.key


def computes(lib: Module, rows: int = 12) -> bool:
    x, y = np.ones((rows, 20), "f4"), np.zeros((rows, 20), "f4")
    lib(x, y)
    return bool(np.array_equal(y, x + 1))


def arguments(func: ir.PrimFunc) -> list[Any]:
    """The same numbers each time."""
    rng = np.random.default_rng(0)
    shapes = [[extent.const for extent in buffer.shape] for buffer in func.params]
    return [rng.standard_normal(shape).astype("f4") for shape in shapes]


def test_explain_pin_and_off_are_visible_in_the_compile_report(store: Store) -> None:
    row = record(store, plus(12), 1e-3)
    said = tw.explain(plus(12), store)
    served = said.served
    assert served is not None and [one.trial for one in said.rows] == [row]
    assert (served.trial, served.seconds, served.worker) == (row, 1e-3, None)
    assert served.trace["version"] == 1 and served.measured_at is not None
    source = tw.build(plus(12), schedules=store).schedule_source
    assert (source.kind, source.reason) == ("exact", served.reason)
    store.pin(*KEY, row, "numbers drift", "ann")
    source = tw.build(plus(12), schedules=store).schedule_source
    assert source.reason == f"trial {row} is pinned by ann: numbers drift"
    store.pin(*KEY, None, "", "ann")
    lib = tw.build(plus(12), schedules=store)
    said_now = lib.schedule_source.kind, lib.schedule_source.reason
    assert said_now == ("default", "the default schedule is pinned by ann") and computes(lib)
    assert store.unpin(*KEY) and not store.unpin(*KEY)
    assert tw.build(plus(12), schedules=store).schedule_source.kind == "exact"


def test_a_row_that_does_not_apply_is_retired_once_and_the_build_goes_on(store: Store) -> None:
    row = record(store, plus(12), 1e-3)
    with store._database.write() as conn:  # type: ignore[attr-defined]
        conn.exec_driver_sql("""UPDATE trials SET trace = '{"version": 1, "steps": [{"do": "sing"}]}'""")
    lib = tw.build(plus(12), schedules=store)
    reason = lib.schedule_source.reason
    assert lib.schedule_source.kind == "default" and computes(lib)
    assert reason.startswith("the best-known schedule no longer applies: unknown step 'sing'")
    assert reason.endswith(f"; trial {row} is retired")
    again = tw.build(plus(12), schedules=store).schedule_source
    assert again.reason.startswith("no record for workload ")
    (gone,) = tw.explain(plus(12), store).retired
    assert gone.trial == row and reason.startswith(gone.reason)


def test_one_damaged_row_leaves_the_others_alone(store: Store) -> None:
    for rows in range(1, 12):
        record(store, plus(rows), 1e-3)
    with store._database.write() as conn:  # type: ignore[attr-defined]
        conn.exec_driver_sql("UPDATE trials SET trace = '{' WHERE rowid = 5")
    kinds = [tw.build(plus(rows), schedules=store).schedule_source.kind for rows in range(1, 12)]
    assert sorted(kinds) == ["default"] + ["exact"] * 10


def test_another_machine_of_the_family_is_served_only_where_that_is_allowed(store: Store) -> None:
    record(store, plus(12), 1e-3)
    with store._database.write() as conn:  # type: ignore[attr-defined]
        elsewhere = "e" * 64
        facts = json.dumps(HERE.facts)
        conn.exec_driver_sql(f"INSERT INTO hardware VALUES ('{elsewhere}', '{facts}', 0)")
        for table in ("jobs", "schedules"):
            conn.exec_driver_sql(f"UPDATE {table} SET hardware = '{elsewhere}'")
    assert tw.build(plus(12), schedules=store).schedule_source.kind == "default"
    lib = tw.build(plus(12), schedules=store, allow=("same_family",))
    assert lib.schedule_source.kind == "same_family" and computes(lib)
    assert lib.schedule_source.record.hardware == elsewhere


def test_a_related_workload_is_transferred_from_the_store(store: Store) -> None:
    func = plus(12)
    record(store, func, 1e-3)
    from tilewright.compiler.ir.structure import structure

    store.put_structure(ir.workload_key(func), structure(func)[0])
    lib = tw.build(plus(16), schedules=store, allow=("transferred",))
    assert lib.schedule_source.kind == "transferred" and computes(lib, 16)
    assert "(12 for 16)" in lib.schedule_source.reason


def test_a_freeze_is_what_a_build_gets_whatever_comes_later(store: Store) -> None:
    row = record(store, plus(12), 1e-3)
    assert store.freeze("release-1").count == 1
    store.retire(record(store, plus(13), 1e-3), "gone")
    source = tw.build(plus(12), schedules=store, freeze="release-1").schedule_source
    assert (source.kind, source.record.trial) == ("exact", row)
    missing = tw.build(plus(13), schedules=store, freeze="release-1").schedule_source
    assert missing.reason.startswith("no record in freeze 'release-1' for workload ")


PROGRAM = """
import hashlib, sys
import numpy as np
{imports}
sys.path.insert(0, {folder!r})
from test_exchange import plus
with tw.connect({url!r}) as store:
    lib = tw.build(plus(12), schedules=store)
x, y = np.arange(240, dtype="f4").reshape(12, 20), np.zeros((12, 20), "f4")
lib(x, y)
hashes = [hashlib.sha256(one).hexdigest() for one in (lib.source().encode(), y.tobytes())]
print(lib.schedule_source.kind, *hashes)
"""


@pytest.mark.slow
def test_five_fresh_processes_get_the_same_code_and_the_same_bytes_from_the_same_row(
    store: Store, url: str
) -> None:
    """Whatever each of them has imported first."""
    record(store, plus(12), 1e-3)
    imports = [
        "import tilewright as tw",
        "import tilewright.db, tilewright.tuner.tune\nimport tilewright as tw",
        "import tilewright.service.client\nimport tilewright as tw",
        "from tilewright.compiler import te\nimport tilewright as tw",
        "import tilewright as tw",
    ]
    runs = []
    for lines in imports:
        program = PROGRAM.format(imports=lines, folder=str(Path(__file__).parent), url=url)
        command = [sys.executable, "-c", program]
        runs.append(subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True))
    assert [r.stderr for r in runs] == [""] * 5
    here = tw.build(plus(12), schedules=store)
    x, y = np.arange(240, dtype="f4").reshape(12, 20), np.zeros((12, 20), "f4")
    here(x, y)
    assert np.array_equal(y, x + 1)
    hashes = [hashlib.sha256(one).hexdigest() for one in (here.source().encode(), y.tobytes())]
    assert [r.stdout.split() for r in runs] == [["exact", *hashes]] * 5


def test_programs_that_differ_in_their_names_share_their_schedule(store: Store) -> None:
    record(store, plus(12), 1e-3)
    a = tw.te.placeholder((12, 20), "float32", name="Input")
    func = tw.te.create_prim_func(
        [a, tw.te.compute((12, 20), lambda row, column: a[row, column] + 1.0, name="Out")], name="other"
    )
    lib = tw.build(func, schedules=store)
    assert lib.schedule_source.kind == "exact" and computes(lib)


def test_what_was_tuned_is_known_with_its_speedup_and_is_measured_no_more(store: Store) -> None:
    func = plus(12)
    found = tw.tune(func, trials=4, store=store, progress=False)
    best = store.best(ir.workload_key(func), TARGET.key, HERE.key)
    assert best is not None and best.baseline is not None
    # Of a kernel of nanoseconds the two readings may come either way round.
    own = best.baseline.trial == best.trial
    assert best.speedup == (1.0 if own else best.baseline.seconds / best.seconds)
    assert best.codegen_version == CODEGEN_VERSION
    again = tw.tune(func, trials=4, store=store, progress=False)
    assert (again.trial_count, again.known_count) == (0, found.trial_count)


def test_a_record_without_a_step_is_for_its_own_workload_alone(store: Store) -> None:
    func = plus(12)
    row = record(store, func, 1e-3)
    with store._database.write() as conn:  # type: ignore[attr-defined]
        conn.exec_driver_sql("""UPDATE trials SET trace = '{"steps":[],"version":1}'""")
    assert tw.build(func, schedules=store).schedule_source.record.trial == row
    a = tw.te.placeholder((20, 12), "float32", name="A")
    turned = tw.te.create_prim_func([a, tw.te.compute((12, 20), lambda i, j: a[j, i] + 1.0, name="B")])
    source = tw.build(turned, schedules=store, allow=("same_family", "transferred")).schedule_source
    assert source.reason.startswith(f"no record for workload {ir.workload_key(turned)}, ")


def test_schedules_that_differ_in_one_annotation_are_as_many_candidates_with_as_many_codes() -> None:
    func = plus(16)

    def made(outer: str | None = None, inner: str | None = None, lanes: int = 4) -> tuple[str, str]:
        sch = tw.Schedule(func)
        i, j = sch.get_loops(sch.get_block("B"))
        loop = sch.split(j, [None, lanes])[1]
        for step, on in ((outer, i), (inner, loop)):
            if step is not None:
                getattr(sch, step)(on)
        key = candidate_key(ir.workload_key(func), sch.trace.canonical_json(), TARGET.key, CODEGEN_VERSION)
        return key, tw.build(sch, "llvm -num-threads=2").source()

    variants = [
        made(),
        made(inner="unroll"),
        made(inner="vectorize"),
        made(inner="vectorize", lanes=2),
        made(outer="parallel"),
        made(outer="unroll"),
    ]
    keys, codes = zip(*variants, strict=True)
    assert len(set(keys)) == len(set(codes)) == len(variants)


@pytest.mark.parametrize(
    "spec",
    [
        {"op": "matmul", "m": 8, "n": 8, "k": 8, "dtype": "float32"},
        {"op": "softmax", "m": 8, "n": 16, "dtype": "float32"},
        {"op": "reduce", "shape": [16, 16], "function": "sum", "dtype": "float32"},
        {"op": "elementwise", "shape": [8, 16], "activation": "gelu", "dtype": "float32"},
    ],
)
def test_each_kind_of_kernel_that_was_tuned_is_found_and_computes_the_same(
    store: Store, url: str, spec: dict[str, Any]
) -> None:
    func = tw.topi.create(spec)
    assert tw.tune(func, trials=3, store=store, progress=False).best is not None

    def built() -> tuple[str, str, list[bytes]]:
        with open_store(url) as again:
            lib = tw.build(func, schedules=again)
        arrays = arguments(func)
        lib(*arrays)
        return lib.schedule_source.kind, lib.source(), [array.tobytes() for array in arrays]

    first = built()
    assert first[0] == "exact" and built() == first


def test_a_build_from_a_store_measures_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the build nor any call of what it made; with a record or without one."""
    from tilewright.measure.runner import Runner

    def measure(*_: object) -> NoReturn:
        raise AssertionError("nothing is measured where a schedule is looked up")

    record(store, plus(12), 1e-3)
    monkeypatch.setattr(Runner, "measure", measure)
    monkeypatch.setattr(Runner, "__init__", measure)
    for rows, kind in ((12, "exact"), (12, "exact"), (40, "default")):
        lib = tw.build(plus(rows), schedules=store)
        assert lib.schedule_source.kind == kind
        assert [computes(lib, rows) for _ in range(3)] == [True] * 3
    assert store.jobs().items[0].done == 1 and len(store.jobs().items) == 1


def test_who_asks_for_strict_sums_gets_those_of_the_text_in_their_order(store: Store) -> None:
    func = tw.topi.create({"op": "matmul", "m": 4, "n": 5, "k": 300, "dtype": "float32"})
    tw.tune(func, trials=3, store=store, progress=False)
    lib = tw.build(func, "llvm -math=strict", schedules=store)
    assert lib.schedule_source.kind == "default"
    assert lib.schedule_source.reason.startswith("no record for workload ")
    a, b, c = arguments(func)
    one_by_one = np.zeros((4, 5), "f4")
    for k in range(300):
        one_by_one += a[:, k : k + 1] * b[k : k + 1, :]
    lib(a, b, c)
    assert c.tobytes() == one_by_one.tobytes()
