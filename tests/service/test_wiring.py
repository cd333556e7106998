from __future__ import annotations

import json
from typing import Any

import pytest
from service_harness import HARDWARE, MATMUL

from tilewright import topi
from tilewright.compiler import ir, te
from tilewright.compiler.target import Hardware, Target, detect
from tilewright.db import Store
from tilewright.service.errors import InvalidTarget
from tilewright.service.requests import JobRequest
from tilewright.service.settings import Settings
from tilewright.service.submission import Submission
from tilewright.service.wiring import CompilerParser
from tilewright.service.workloads import SpecError

PARSER = CompilerParser()


def _refusal(spec: dict[str, Any]) -> tuple[str, str]:
    with pytest.raises(SpecError) as refused:
        PARSER.workload(spec)
    return refused.value.message, refused.value.pointer


def test_a_target_that_no_worker_can_build_for_is_taken_only_for_jobs_that_are_measured_outside(
    store: Store,
) -> None:
    said: dict[str, Any] = {"workload": MATMUL, "target": "c", "hardware": HARDWARE}
    with pytest.raises(InvalidTarget) as refused:
        Submission.of(JobRequest.model_validate(said), PARSER, store, Settings())
    assert refused.value.faults[0].pointer == "/target"
    assert "measure outside" in refused.value.detail
    outside = JobRequest.model_validate({**said, "measure": "outside"})
    assert Submission.of(outside, PARSER, store, Settings()).target.key == Target.parse("c").key


def test_an_operator_is_read_as_its_program() -> None:
    func = topi.create(MATMUL)
    workload = PARSER.workload(MATMUL)
    assert (workload.key, workload.name, workload.script, workload.flops) == (
        ir.workload_key(func),
        "matmul",
        ir.script(func),
        2.0 * 64**3,
    )


def test_a_stored_program_reads_back_to_the_same_workload() -> None:
    workload = PARSER.workload(MATMUL)
    assert ir.workload_key(ir.from_json(json.loads(workload.program))) == workload.key


def test_a_program_is_the_same_workload_as_its_operator_whatever_its_names() -> None:
    program = ir.to_json(topi.create(MATMUL))
    nameless = ir.to_json(topi.create(MATMUL), names=False)
    keys = {PARSER.workload(spec).key for spec in (MATMUL, program, nameless)}
    assert len(keys) == 1


def test_a_programs_operations_are_counted() -> None:
    assert PARSER.flops(PARSER.workload(MATMUL).program) == 2.0 * 64**3


def test_an_unknown_operator_is_refused_naming_those_there_are() -> None:
    message, pointer = _refusal({"op": "mathmul"})
    assert (message.startswith("unknown operator 'mathmul'; known: matmul, "), pointer) == (True, "/op")


def test_an_argument_that_an_operator_does_not_have_is_refused_at_its_pointer() -> None:
    message, pointer = _refusal({**MATMUL, "q": 1})
    assert (message.startswith("'matmul' has no parameter 'q'; it has: m, n, k"), pointer) == (True, "/q")


def test_a_program_that_is_wrong_is_refused_at_its_pointer() -> None:
    program = ir.to_json(topi.create(MATMUL))
    program["params"][1]["dtype"] = "float7"
    assert _refusal(program)[1] == "/params/1/dtype"


def test_what_is_neither_is_refused_with_both() -> None:
    assert _refusal({"operator": "matmul"}) == (
        'a workload is an operator, such as {"op": "matmul", "m": 64, "n": 64, "k": 64, "dtype": "float32"}, '
        "or a program as canonical IR JSON, which has a key 'tilewright'; "
        "got an object with the keys operator",
        "",
    )


def test_a_target_is_stored_with_every_default_filled_in() -> None:
    spec = PARSER.target("llvm", None)
    assert (spec.key, json.loads(spec.description)) == (
        Target.parse("llvm").key,
        Target.parse("llvm").to_json(),
    )


def test_a_targets_host_is_the_machine_that_the_facts_describe() -> None:
    facts = {
        **detect().facts,
        "mcpu": "skylake-avx512",
        "features": None,
        "l1d": None,
        "l2": None,
        "l3": None,
    }
    described = PARSER.target({"kind": "llvm"}, facts)
    assert described.key == Target.parse("llvm -mcpu=skylake-avx512").key


X86 = {"architecture": "x86_64", "mcpu": "x86-64-v3", "features": None, "model_name": "A processor"}


@pytest.mark.parametrize(
    ("target", "features", "lacks"),
    [
        ("llvm -mcpu=cortex-a72", None, "aarch64"),
        ("llvm -mcpu=x86-64-v3 -mattr=+avx512f", ["avx", "avx2", "fma", "f16c"], "avx512f"),
    ],
)
def test_a_target_that_the_hardware_cannot_run_is_refused_naming_what_it_lacks(
    target: str, features: list[str] | None, lacks: str
) -> None:
    facts = {**X86, "features": features}
    with pytest.raises(SpecError) as refused:
        PARSER.target(target, facts)
    words = f"cannot run on hardware {PARSER.hardware_key(facts)[:12]} (A processor), which lacks "
    assert (words in refused.value.message, lacks in refused.value.message) == (True, True)


def test_a_target_below_the_hardware_is_taken() -> None:
    assert PARSER.target("llvm -mcpu=x86-64", {**X86, "features": ["avx", "avx2", "fma"]}).key


def test_any_target_is_taken_while_the_hardware_is_not_known() -> None:
    assert PARSER.target("llvm -mcpu=cortex-a72", None).key


def test_an_unknown_target_is_refused() -> None:
    with pytest.raises(SpecError, match="no code generator for 'vax'; registered: c, llvm; to add one: "):
        PARSER.target("vax", None)


def test_the_hardware_key_is_that_of_the_facts() -> None:
    machine = detect()
    assert PARSER.hardware_key(machine.facts) == machine.key == Hardware.of(machine.facts).key


def test_the_hardware_key_survives_the_wire() -> None:
    machine = detect()
    assert PARSER.hardware_key(json.loads(json.dumps(machine.facts))) == machine.key


def test_facts_that_have_no_canonical_form_are_refused() -> None:
    with pytest.raises(SpecError, match="facts must be plain JSON values"):
        PARSER.hardware_key({"vendor": 2**60})


def test_every_operator_has_a_schema() -> None:
    assert sorted(PARSER.operators()) == sorted(topi.OPERATORS)


def test_a_program_over_sizes_asks_for_numbers() -> None:
    n = te.var("n")
    a = te.placeholder((n,), "float32", name="A")
    func = te.create_prim_func([a, te.compute((n,), lambda i: a[i] + 1, name="B")])
    assert _refusal(ir.to_json(func)) == ("a search needs numbers: bind n or give sizes", "/sizes")
