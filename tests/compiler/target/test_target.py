"""Target descriptions: notations, defaults, refusals, keys and the facts derived from them."""

import json
import pickle
from typing import Any

import pytest

from tilewright.compiler.target import Attribute, Target, TargetError, backends
from tilewright.compiler.target.cpus import CPUS
from tilewright.compiler.target.features import known_features
from tilewright.compiler.target.host import host_cpu

V3 = Target.parse("llvm -mcpu=x86-64-v3")
V3_JSON = {
    "kind": "llvm",
    "mcpu": "x86-64-v3",
    "features": [
        *("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt"),
        *("sse", "sse2", "sse3", "sse4.1", "sse4.2", "ssse3"),
    ],
    "num-threads": 1,
    "math": "reassoc",
    "l1d": 32768,
    "l2": 262144,
    "l3": 8388608,
}


def refusal(spec: Any) -> str:
    with pytest.raises(TargetError) as caught:
        Target.parse(spec)
    return str(caught.value)


@pytest.mark.parametrize(
    "spec",
    [
        "llvm -mcpu=x86-64-v3",
        "  llvm  -mcpu=x86-64-v3 -num-threads=1 -math=reassoc ",
        "llvm --mcpu=x86-64-v3",
        {"kind": "llvm", "mcpu": "x86-64-v3"},
        {"kind": "llvm", "mcpu": "x86-64-v3", "num-threads": 1},
        '{"kind": "llvm", "mcpu": "x86-64-v3"}',
        V3_JSON,
        json.dumps(V3_JSON),
        "llvm -mcpu=x86-64-v2 -mattr=+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe -l3=8388608",
        V3,
    ],
)
def test_every_notation_means_the_same_target(spec: Any) -> None:
    parsed = Target.parse(spec)
    assert {**parsed.to_json(), "mcpu": "x86-64-v3"} == V3_JSON


def test_json_has_every_default_filled_in() -> None:
    assert V3.to_json() == V3_JSON


@pytest.mark.parametrize("name", CPUS)
def test_every_processor_comes_back_from_its_words_and_from_its_json(name: str) -> None:
    target = Target.parse(f"llvm -mcpu={name} -math=strict")
    assert (Target.parse(str(target)), Target.parse(target.to_json())) == (target, target)


def test_changed_features_and_caches_come_back_from_the_words() -> None:
    target = Target.parse("llvm -mcpu=znver4 -mattr=-avx512bf16,+amx-int8 -l1d=65536 -l2=1 -l3=0")
    assert (str(target), Target.parse(str(target))) == (
        "llvm -mcpu=znver4 -mattr=-avx512bf16,+amx-int8,+amx-tile -num-threads=1 -math=reassoc "
        "-l1d=65536 -l2=1 -l3=0",
        target,
    )


def test_a_given_mapping_is_left_as_it_was() -> None:
    spec = {"kind": "llvm", "mcpu": "x86-64-v3"}
    Target.parse(spec)
    assert spec == {"kind": "llvm", "mcpu": "x86-64-v3"}


def test_a_feature_brings_what_it_needs() -> None:
    target = Target.parse("llvm -mcpu=x86-64 -mattr=+avx")
    assert target.features == ("avx", "sse", "sse2", "sse3", "sse4.1", "sse4.2", "ssse3")


def test_a_feature_switched_off_takes_along_what_needs_it() -> None:
    target = Target.parse("llvm -mcpu=x86-64-v4 -mattr=-avx")
    assert target.features == (
        *("bmi", "bmi2", "lzcnt", "movbe", "popcnt", "sse", "sse2", "sse3", "sse4.1", "sse4.2", "ssse3"),
    )


def test_another_name_of_a_processor_means_the_same_target() -> None:
    assert Target.parse("llvm -mcpu=core-avx2") == Target.parse("llvm -mcpu=haswell")


def test_the_host_is_the_default_processor() -> None:
    target = Target.parse("llvm")
    assert (target, target.mcpu, target.features) == (
        Target.parse("llvm -mcpu=host"),
        host_cpu().name,
        tuple(sorted(host_cpu().features)),
    )


def test_equal_targets_have_equal_hashes_and_survive_pickling() -> None:
    copy = pickle.loads(pickle.dumps(V3))
    assert (copy, hash(copy), copy.key) == (V3, hash(V3), V3.key)


def test_the_key_of_a_target_never_changes() -> None:
    # Stored records are found by it: a change here loses them all.
    assert V3.key == "708ad63d788e8308f5ed21ed45ce0912e326a200205a3cb2256156c4d49e9b61"


def test_the_key_depends_on_processor_features_and_math() -> None:
    keys = {
        Target.parse(spec).key
        for spec in (
            "llvm -mcpu=znver4",
            "llvm -mcpu=znver5",
            "llvm -mcpu=znver4 -mattr=-avx512bf16",
            "llvm -mcpu=znver4 -math=strict",
        )
    }
    assert len(keys) == 4


@pytest.mark.parametrize(
    ("spec", "facts"),
    [
        ("llvm -mcpu=x86-64", ("x86_64", 16, 16, False, 4, 2)),
        ("llvm -mcpu=sandybridge", ("x86_64", 32, 16, False, 8, 4)),
        ("llvm -mcpu=x86-64-v3", ("x86_64", 32, 16, True, 8, 4)),
        ("llvm -mcpu=znver4", ("x86_64", 64, 32, True, 16, 8)),
        ("llvm -mcpu=znver4 -mattr=-avx512f", ("x86_64", 32, 16, True, 8, 4)),
        ("llvm -mcpu=neoverse-n1", ("aarch64", 16, 32, True, 4, 2)),
    ],
)
def test_vectors_follow_from_the_features(spec: str, facts: tuple[object, ...]) -> None:
    t = Target.parse(spec)
    assert (
        *(t.architecture, t.vector_bytes, t.vector_registers, t.has_fma),
        *(t.lanes(32), t.lanes(64)),
    ) == facts


def test_a_bool_takes_a_byte_of_a_vector() -> None:
    assert (V3.lanes(1), V3.lanes(8)) == (32, 32)


def test_an_unknown_kind_is_refused_naming_the_known_ones_and_the_way_to_add_one() -> None:
    assert refusal("cuda -arch=sm_90") == (
        "no code generator for 'cuda'; registered: c, llvm; to add one: install a package with an "
        "entry point 'cuda' in the group 'tilewright.backends'"
    )


def test_a_missing_kind_is_refused() -> None:
    assert refusal({"mcpu": "host"}) == "target: 'kind' is missing; known kinds: c, llvm"


def test_words_without_a_kind_are_refused() -> None:
    assert refusal("-mcpu=host") == "target: 'kind' is missing; known kinds: c, llvm"


def test_an_empty_description_is_refused() -> None:
    assert refusal("") == "target: 'kind' is missing; known kinds: c, llvm"


def test_an_unknown_attribute_is_refused_naming_the_known_ones() -> None:
    assert refusal("llvm -triple=x86_64-linux-gnu") == (
        "target llvm: unknown attribute 'triple'; "
        "known attributes: mcpu, mattr, features, num-threads, math, l1d, l2, l3, mtriple"
    )


def test_a_kind_knows_its_own_attributes_only() -> None:
    assert refusal("c -mtriple=x86_64-linux-gnu") == (
        "target c: unknown attribute 'mtriple'; "
        "known attributes: mcpu, mattr, features, num-threads, math, l1d, l2, l3"
    )


@pytest.mark.parametrize(
    ("spec", "facts"),
    [
        ("llvm -mtriple=x86_64-linux-gnu", ("x86-64", "x86_64", 16, 4)),
        ("llvm -mtriple=amd64-unknown-linux-gnu -mcpu=znver4", ("znver4", "x86_64", 64, 16)),
        ("llvm -mtriple=aarch64-linux-gnu", ("cortex-a53", "aarch64", 16, 4)),
        ("llvm -mtriple=arm64-apple-macosx -mcpu=apple-m1", ("apple-m1", "aarch64", 16, 4)),
        ("llvm -mtriple=riscv64-linux-gnu", ("generic-rv64", "riscv64", 8, 2)),
        ("llvm -mtriple=riscv64-linux-gnu -mattr=+v", ("generic-rv64", "riscv64", 16, 4)),
        ("llvm -mcpu=sifive-x280", ("sifive-x280", "riscv64", 64, 16)),
    ],
)
def test_a_triple_implies_a_processor_and_a_processor_its_architecture(
    spec: str, facts: tuple[object, ...]
) -> None:
    t = Target.parse(spec)
    assert (t.mcpu, t.architecture, t.vector_bytes, t.lanes(32)) == facts


@pytest.mark.parametrize(
    "spec", ["llvm -mtriple=aarch64-linux-gnu", "llvm -mtriple=riscv64-linux-gnu -mattr=+v", "c"]
)
def test_a_triple_and_a_kind_come_back_from_the_words_and_from_the_json(spec: str) -> None:
    target = Target.parse(spec)
    assert (Target.parse(str(target)), Target.parse(target.to_json())) == (target, target)


def test_the_triple_that_is_not_given_is_linux_on_the_architecture() -> None:
    triples = [Target.parse(f"llvm -mcpu={cpu}").triple for cpu in ("znver4", "neoverse-n1", "sifive-u74")]
    assert triples == [
        "x86_64-unknown-linux-gnu",
        "aarch64-unknown-linux-gnu",
        "riscv64-unknown-linux-gnu",
    ]


@pytest.mark.parametrize(
    ("triple", "message"),
    [
        ("aarch64", "mtriple='aarch64': must be of the form architecture-system, as in aarch64-linux-gnu"),
        (
            "sparc64-linux-gnu",
            "mtriple='sparc64-linux-gnu': unknown architecture 'sparc64'; "
            "known: x86_64, amd64, aarch64, arm64, riscv64",
        ),
        (
            "aarch64-linux-gnu -mcpu=znver4",
            "mtriple='aarch64-linux-gnu' is of aarch64 and mcpu='znver4' of x86_64",
        ),
    ],
)
def test_a_wrong_triple_is_refused_saying_what_would_be_right(triple: str, message: str) -> None:
    assert refusal(f"llvm -mtriple={triple}") == f"target llvm: {message}"


@pytest.mark.parametrize(
    ("given", "value"),
    [("true", True), ("0", False), (True, True)],
)
def test_an_attribute_that_is_true_or_false_reads_both_words_and_digits(given: Any, value: bool) -> None:
    assert Attribute("fast", "bool", False).check(given) is value


def test_an_attribute_that_is_neither_true_nor_false_is_refused() -> None:
    with pytest.raises(TargetError, match=r"^fast='yes': must be true or false$"):
        Attribute("fast", "bool", False).check("yes")


def test_a_kind_that_is_no_string_is_refused() -> None:
    assert refusal({"kind": ["llvm"]}) == "target: 'kind' is a string, not list"


def test_the_kinds_are_listed_with_what_they_come_from() -> None:
    assert {(b.name, b.distribution, b.error) for b in backends()} >= {
        ("c", "tilewright", None),
        ("llvm", "tilewright", None),
    }


def test_an_unknown_processor_is_refused_naming_the_known_ones() -> None:
    assert refusal("llvm -mcpu=zenver4") == (
        f"target llvm: unknown mcpu 'zenver4'; known: host, {', '.join(CPUS)}"
    )


def test_an_unknown_feature_is_refused_naming_the_known_ones() -> None:
    assert refusal("llvm -mcpu=neoverse-n1 -mattr=+avx2") == (
        "target llvm: unknown feature 'avx2' of aarch64; "
        "known features: bf16, dotprod, fullfp16, i8mm, neon, sve, sve2"
    )


def test_an_unknown_listed_feature_is_refused_naming_the_known_ones() -> None:
    assert refusal({"kind": "llvm", "mcpu": "x86-64", "features": ["sse5"]}) == (
        "target llvm: unknown feature 'sse5' of x86_64; "
        f"known features: {', '.join(known_features('x86_64'))}"
    )


def test_a_change_of_features_without_a_sign_is_refused() -> None:
    assert refusal("llvm -mcpu=x86-64 -mattr=avx2") == (
        "target llvm: mattr: 'avx2' must start with + or -, as in +avx2,-fma"
    )


def test_features_and_changes_together_are_refused() -> None:
    assert refusal({"kind": "llvm", "mcpu": "x86-64", "features": ["sse2"], "mattr": "+avx"}) == (
        "target llvm: give 'features', the whole list, or 'mattr', the changes, not both"
    )


@pytest.mark.parametrize(
    "spec",
    [
        "llvm -mcpu=x86-64 -mattr=-sse2",
        "c -mcpu=znver4 -mattr=-sse",
        {"kind": "llvm", "mcpu": "x86-64", "features": []},
    ],
)
def test_x86_without_sse2_is_refused(spec: str | dict[str, Any]) -> None:
    kind = spec["kind"] if isinstance(spec, dict) else spec.split()[0]
    assert refusal(spec) == (
        f"target {kind}: the feature 'sse2' must be on: floats of x86_64 are computed with it"
    )


@pytest.mark.parametrize("digits", ["--5", "5-", "+5", "1_000", "٣", "9" * 5000])
def test_what_is_no_integer_is_refused(digits: str) -> None:
    assert refusal(f"llvm -mcpu=znver4 -l1d={digits}") == (
        f"target llvm: l1d={digits!r}: must be an integer of at least 0"
    )


def test_an_integer_that_no_key_holds_is_refused() -> None:
    assert refusal({"kind": "llvm", "l1d": 1 << 53}) == (
        "target llvm: l1d=9007199254740992: must be at most 9007199254740991, "
        "which is all that a key can hold"
    )


def test_json_that_names_an_attribute_twice_is_refused() -> None:
    assert refusal('{"kind": "llvm", "kind": "c"}') == "target: 'kind' is given twice"


def test_json_nested_beyond_reason_is_refused() -> None:
    assert refusal('{"kind": ' + "[" * 100_000) == "target: JSON nested too deeply"


def test_a_triple_is_of_ascii() -> None:
    assert refusal("llvm -mtriple=x86_64-é-linux") == (
        "target llvm: mtriple='x86_64-é-linux': "
        "must be of the form architecture-system, as in aarch64-linux-gnu"
    )


def test_several_threads_are_another_target() -> None:
    one, two = (Target.parse(f"llvm -mcpu=x86-64-v3 -num-threads={n}") for n in (1, 2))
    assert (two.num_threads, Target.parse(str(two))) == (2, two)
    assert one.key == Target.parse("llvm -mcpu=x86-64-v3").key != two.key


@pytest.mark.parametrize(
    ("attribute", "value", "message"),
    [
        ("num-threads", 0, "num-threads=0: must be an integer of at least 1"),
        ("num-threads", 513, "num-threads=513: must be at most 512"),
        ("num-threads", "two", "num-threads='two': must be an integer of at least 1"),
        ("num-threads", True, "num-threads=True: must be an integer of at least 1"),
        ("num-threads", 1.0, "num-threads=1.0: must be an integer of at least 1"),
        ("num-threads", None, "num-threads=None: must be an integer of at least 1"),
        ("l2", -1, "l2=-1: must be an integer of at least 0"),
        ("math", "fast", "math='fast': must be 'strict' or 'reassoc'"),
        ("mcpu", 4, "mcpu=4: must be a string"),
        ("features", [1], "features=[1]: must be a list of strings"),
    ],
)
def test_a_wrong_value_is_refused_saying_what_would_be_right(
    attribute: str, value: Any, message: str
) -> None:
    assert refusal({"kind": "llvm", attribute: value}) == f"target llvm: {message}"


def test_a_word_that_is_no_attribute_is_refused() -> None:
    assert refusal("llvm mcpu=host") == "target 'llvm mcpu=host': 'mcpu=host' is not of the form -name=value"


def test_an_attribute_given_twice_is_refused() -> None:
    assert refusal("llvm -l2=1 -l2=2") == "target 'llvm -l2=1 -l2=2': 'l2' is given twice"


def test_broken_json_is_refused() -> None:
    assert refusal('{"kind":') == "target: not JSON: Expecting value: line 1 column 9 (char 8)"


def test_another_type_is_refused() -> None:
    assert refusal(3) == "a target is a string, a mapping or a Target, not int"


def test_a_target_error_survives_pickling() -> None:
    assert str(pickle.loads(pickle.dumps(TargetError("refused")))) == "refused"
