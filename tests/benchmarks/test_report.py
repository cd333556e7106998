import xml.etree.ElementTree as ET
from typing import Any

from bench import plot, report

LIMITS = {
    "peaks": {"float32": 100e9, "float16": 100e9, "int8": 400e9},
    "capacity": {"L1": 1 << 15, "memory": 0},
    "bandwidth": {
        "L1": {"read": 400e9, "copy": 200e9, "triad": 300e9},
        "memory": {"read": 20e9, "copy": 10e9, "triad": 12e9},
    },
}
FACTS: dict[str, Any] = {
    "machine": "A <CPU>",
    "microarchitecture": "znver5",
    "target": "llvm -mcpu=znver5 -math=reassoc",
    "commit": "abc",
    "peers": {"numpy": "2.0"},
    "missing": ["torch"],
    "limits": {"1": LIMITS},
}


def _result(name: str, **more: Any) -> dict[str, Any]:
    ratio = {"median": 2.0, "low": 1.5, "high": 2.5}
    return {
        "workload": name,
        "title": "matmul",
        "count": 3,
        "threads": 1,
        "flops": 2_000_000,
        "round_flops": None,
        "intensity": 4.0,
        "gflops": {"tuned": 50.0, "default": 25.0, "numpy": 25.0},
        "roofline": {"seconds": 2e-5, "by": "compute", "level": "L1", "reached": 0.5},
        "ours": "tuned",
        "seconds": {"tuned": 4e-5, "default": 8e-5, "numpy": 8e-5},
        "ratio": {"default": ratio, "numpy": ratio},
        "best_peer": "numpy",
        "notes": [],
        **more,
    }


def test_a_report_is_a_heading_tables_means_and_notes() -> None:
    alone = _result("B", best_peer=None, roofline=None, ratio={}, notes=["torch left out: it refuses"])
    assert (
        report.tables(FACTS, [_result("A"), alone])
        == """\
A <CPU> (znver5), llvm -mcpu=znver5 -math=reassoc, commit abc.
Peers: numpy 2.0; missing: torch.
Peak, 1 thread(s), GFLOP/s: float32 100, float16 100, int8 400.
Bandwidth, 1 thread(s), GB/s read/copy/triad: L1 400/200/300, memory 20/10/12.

1 thread:

|  | workload | time | GFLOP/s | roofline | default | numpy | best peer |
| --- | --- | --- | --- | --- | --- | --- | --- |
| A | matmul (x3) | 40.0 us | 50 | 50% compute | 2.00 | 2.00 | numpy 2.00 [1.50, 2.50] |
| B | matmul (x3) | 40.0 us | 50 | - | - | - | - |

Geometric means: best peer / ours 2.00 (1 workload, least 2.00); default / tuned 2.00 (most 2.00); \
of the roofline 50%.

- B, 1 thread(s): torch left out: it refuses
"""
    )


def test_an_odd_size_is_set_beside_the_next_round_one() -> None:
    ratio = {"median": 1.25, "low": 1.0, "high": 1.5}
    row = report.table([_result("O", ratio={"round": ratio}, round_flops=2_500_000, best_peer=None)])
    assert row.splitlines()[-1].endswith("| - | - | time 1.25, GFLOP/s 1.00 |")


def test_durations_have_three_digits_and_a_unit() -> None:
    assert [report.duration(s) for s in (2.5, 0.0123, 123.4e-6, 9.87e-6, 0.5e-6)] == [
        "2.50 s",
        "12.3 ms",
        "123 us",
        "9.87 us",
        "0.50 us",
    ]


def test_a_plot_is_well_formed_and_has_a_point_for_each_workload_with_a_roofline() -> None:
    text = plot.roofline(FACTS, [_result("A"), _result("B & C"), _result("D", roofline=None)])
    svg = "{http://www.w3.org/2000/svg}"
    root = ET.fromstring(text)
    titles = [c.findtext(f"{svg}title") for c in root.iter(f"{svg}circle")]
    assert titles == [f"{n}: matmul, 50% of its roofline" for n in ("A", "B & C")]
    texts = [t.text for t in root.iter(f"{svg}text")]
    assert (
        "float32 100 GFLOP/s" in texts and "memory 10 GB/s" in texts and "A <CPU>, llvm -mcpu=znver5" in texts
    )
