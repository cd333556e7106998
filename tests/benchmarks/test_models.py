import pytest
from bench.models import facts, models, multiply_adds, rows, suite
from bench.workloads import SETS, W, Workload, workloads

from tilewright.compiler.ir import IterKind, PrimFunc


def _contracted(func: PrimFunc) -> int:
    """Points of the heaviest reduction."""
    total = 0
    for _, b in func.blocks():
        points = 1
        for it in b.iters:
            points *= it.extent.const or 0
        total = max(total, points if IterKind.REDUCE in b.kinds else 0)
    return total


@pytest.mark.parametrize(
    ("name", "total"), [("resnet50", 4.089), ("mobilenet_v2", 0.301), ("bert_base", 11.174)]
)
def test_the_layers_of_a_model_add_up_to_its_published_multiply_adds(name: str, total: float) -> None:
    counted = sum(row["count"] * multiply_adds(kind, row) for kind, row in rows(name) if kind != "softmax")
    assert round(counted / 1e9, 3) == total


@pytest.mark.parametrize(("name", "layers"), [("resnet50", 53), ("mobilenet_v2", 52)])
def test_a_model_has_its_number_of_convolutions(name: str, layers: int) -> None:
    assert sum(row["count"] for kind, row in rows(name) if kind == "conv2d") == layers


@pytest.mark.parametrize("name", ["resnet50", "mobilenet_v2", "bert_base"])
def test_the_program_of_a_layer_has_the_multiply_adds_of_its_formula(name: str) -> None:
    layers = zip(models((name,)), rows(name), strict=True)
    products = [(w, kind, row) for w, (kind, row) in layers if multiply_adds(kind, row)]
    wanted = {w.name: multiply_adds(kind, row) for w, kind, row in products}
    assert {w.name: _contracted(w.program()) for w, _, _ in products} == wanted


def test_every_name_is_of_one_workload() -> None:
    names = [w.name for w in workloads(["all"])]
    assert len(names) == len(set(names))
    assert len(names) == 12 + 14 + 24 + 31 + 9 + (40 + 3) + 11


def test_every_workload_has_a_program() -> None:
    for w in workloads(["all"]):
        assert w.program().outputs, w.name
        assert w.arguments()["op"] == w.operator["op"]


def test_sets_and_names_that_nobody_knows_are_refused_with_what_is_known() -> None:
    with pytest.raises(SystemExit, match="unknown sets x; known: all, w, odd, models, suite, narrow"):
        workloads(["x"])
    with pytest.raises(SystemExit, match="unknown workloads W99; known: W1, W2"):
        workloads(["w"], ["W99"])
    assert [w.name for w in workloads(["narrow"], ["W10", "W1"])] == ["W10", "W1"]


def test_sources_are_named_for_every_network() -> None:
    told = {line.partition(":")[0] for line in facts()["source"]}
    assert told == {"resnet50", "resnet50_v1", "mobilenet_v2", "bert_base", "suite"}
    assert len(suite()) == 43 and SETS[0] == "w" and all(isinstance(w, Workload) for w in W)
